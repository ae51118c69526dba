// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The names of PostgreSQL's wait events, 10 to 16, by the number in the class: the position among
 * the names that the release has. Two letters before each are the first and the last release that
 * has it; 'a' is 10. Minor releases have only added names at the end.
 *
 * Source: pgstat_get_wait_event() of the server programs; ci/wait-events prints the tables.
 */
#include <string.h>

#include "db/postgres/wait_names.h"

static const char buffer[] =
	"agBufferPin\0";

static const char activity[] =
	"agArchiverMain\0agAutoVacuumMain\0agBgWriterHibernate\0agBgWriterMain\0"
	"agCheckpointerMain\0abLogicalLauncherMain\0agLogicalApplyMain\0cgLogicalLauncherMain\0"
	"aePgStatMain\0acRecoveryWalAll\0ggLogicalParallelApplyMain\0agRecoveryWalStream\0"
	"agSysLoggerMain\0agWalReceiverMain\0agWalSenderMain\0agWalWriterMain\0";

static const char client[] =
	"agClientRead\0agClientWrite\0dgGSSOpenServer\0agLibPQWalReceiverConnect\0"
	"agLibPQWalReceiverReceive\0agSSLOpenServer\0adWalReceiverWaitStart\0"
	"agWalSenderWaitForWAL\0agWalSenderWriteData\0ccGSSOpenServer\0";

static const char extension[] =
	"agExtension\0";

static const char ipc[] =
	"egAppendReady\0fgArchiveCleanupCommand\0fgArchiveCommand\0egBackendTermination\0"
	"dgBackupWaitWalArchive\0agBgWorkerShutdown\0agBgWorkerStartup\0agBtreePage\0"
	"ccClogGroupUpdate\0egBufferIO\0cgCheckpointDone\0cgCheckpointStart\0agExecuteGather\0"
	"bcHash/Batch/Allocating\0bcHash/Batch/Electing\0bcHash/Batch/Loading\0"
	"bcHash/Build/Allocating\0bcHash/Build/Electing\0bcHash/Build/HashingInner\0"
	"bcHash/Build/HashingOuter\0ccHash/GrowBatches/Allocating\0ccHash/GrowBatches/Deciding\0"
	"bcHash/GrowBatches/Electing\0bcHash/GrowBatches/Finishing\0"
	"bcHash/GrowBatches/Repartitioning\0bbHash/GrowBatches/Allocating\0"
	"bbHash/GrowBatches/Deciding\0ccHash/GrowBuckets/Allocating\0"
	"bcHash/GrowBuckets/Electing\0bcHash/GrowBuckets/Reinserting\0"
	"bbHash/GrowBuckets/Allocating\0dgHashBatchAllocate\0dgHashBatchElect\0dgHashBatchLoad\0"
	"dgHashBuildAllocate\0dgHashBuildElect\0dgHashBuildHashInner\0dgHashBuildHashOuter\0"
	"dfHashGrowBatchesAllocate\0dgHashGrowBatchesDecide\0dgHashGrowBatchesElect\0"
	"dgHashGrowBatchesFinish\0ggHashGrowBatchesReallocate\0dgHashGrowBatchesRepartition\0"
	"dfHashGrowBucketsAllocate\0dgHashGrowBucketsElect\0ggHashGrowBucketsReallocate\0"
	"dgHashGrowBucketsReinsert\0ggLogicalApplySendData\0ggLogicalParallelApplyStateChange\0"
	"agLogicalSyncData\0agLogicalSyncStateChange\0agMessageQueueInternal\0"
	"agMessageQueuePutMessage\0agMessageQueueReceive\0agMessageQueueSend\0abParallelFinish\0"
	"agParallelBitmapScan\0bgParallelCreateIndexScan\0cgParallelFinish\0"
	"agProcArrayGroupUpdate\0bbClogGroupUpdate\0dgProcSignalBarrier\0cgPromote\0"
	"dgRecoveryConflictSnapshot\0dgRecoveryConflictTablespace\0fgRecoveryEndCommand\0"
	"dgRecoveryPause\0agReplicationOriginDrop\0agReplicationSlotDrop\0fgRestoreCommand\0"
	"agSafeSnapshot\0agSyncRep\0egWalReceiverExit\0egWalReceiverWaitStart\0"
	"dgXactGroupUpdate\0";

static const char timeout[] =
	"agBaseBackupThrottle\0fgCheckpointWriteDelay\0agPgSleep\0agRecoveryApplyDelay\0"
	"dgRecoveryRetrieveRetryInterval\0deVacuumDelay\0eeCheckpointWriteDelay\0"
	"cgRegisterSyncRequest\0ggSpinDelay\0fgVacuumDelay\0fgVacuumTruncate\0";

static const char io[] =
	"egBaseBackupRead\0fgBaseBackupSync\0fgBaseBackupWrite\0agBufFileRead\0agBufFileWrite\0"
	"egBufFileTruncate\0agControlFileRead\0agControlFileSync\0agControlFileSyncUpdate\0"
	"agControlFileWrite\0agControlFileWriteUpdate\0agCopyFileRead\0agCopyFileWrite\0"
	"agDataFileExtend\0agDataFileFlush\0agDataFileImmediateSync\0agDataFilePrefetch\0"
	"agDataFileRead\0agDataFileSync\0agDataFileTruncate\0agDataFileWrite\0ggDSMAllocate\0"
	"agDSMFillZeroWrite\0agLockFileAddToDataDirRead\0agLockFileAddToDataDirSync\0"
	"agLockFileAddToDataDirWrite\0agLockFileCreateRead\0agLockFileCreateSync\0"
	"agLockFileCreateWrite\0agLockFileReCheckDataDirRead\0agLogicalRewriteCheckpointSync\0"
	"agLogicalRewriteMappingSync\0agLogicalRewriteMappingWrite\0agLogicalRewriteSync\0"
	"agLogicalRewriteTruncate\0agLogicalRewriteWrite\0agRelationMapRead\0afRelationMapSync\0"
	"ggRelationMapReplace\0agRelationMapWrite\0agReorderBufferRead\0agReorderBufferWrite\0"
	"agReorderLogicalMappingRead\0agReplicationSlotRead\0agReplicationSlotRestoreSync\0"
	"agReplicationSlotSync\0agReplicationSlotWrite\0agSLRUFlushSync\0agSLRURead\0agSLRUSync\0"
	"agSLRUWrite\0agSnapbuildRead\0agSnapbuildSync\0agSnapbuildWrite\0"
	"agTimelineHistoryFileSync\0agTimelineHistoryFileWrite\0agTimelineHistoryRead\0"
	"agTimelineHistorySync\0agTimelineHistoryWrite\0agTwophaseFileRead\0agTwophaseFileSync\0"
	"agTwophaseFileWrite\0fgVersionFileWrite\0agWALSenderTimelineHistoryRead\0"
	"agWALBootstrapSync\0agWALBootstrapWrite\0agWALCopyRead\0agWALCopySync\0agWALCopyWrite\0"
	"agWALInitSync\0agWALInitWrite\0agWALRead\0cgWALSync\0agWALSyncMethodAssign\0agWALWrite\0"
	"eeLogicalChangesRead\0eeLogicalChangesWrite\0eeLogicalSubxactRead\0"
	"eeLogicalSubxactWrite\0fgVersionFileSync\0";

static const char *const tables[WAIT_CLASSES] = {
	[WAIT_BUFFER] = buffer, [WAIT_ACTIVITY] = activity, [WAIT_CLIENT] = client,
	[WAIT_EXTENSION] = extension, [WAIT_IPC] = ipc, [WAIT_TIMEOUT] = timeout, [WAIT_IO] = io,
};

const char *wait_table_name(unsigned int release, enum wait_class class, unsigned int id)
{
	const char *at = tables[class];
	int letter;

	if (!at || release < 10 || release > 16)
		return NULL;
	for (letter = 'a' + (int)release - 10; *at; at += strlen(at) + 1)
		if (at[0] <= letter && letter <= at[1] && !id--)
			return at + 2;
	return NULL;
}
