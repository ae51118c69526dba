# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
metric_readers.py PROGRAMS FOLDER QUERY...: what Prometheus and VictoriaMetrics answer about FOLDER/*.prom, read by HTTP
(job "direct"), and from node_exporter's textfile collector (job "node"). Runs in a network namespace of its own, where
each port is free. Prints {program: {query: [{labels, value}]}} once each query, which keeps the label job, has an answer
of both.
"""

import glob
import http.server
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import fcntl

PORTS = {"node": 9100, "direct": 8000, "prometheus": 9090, "victoria": 8428}
# Has an answer once all samples of a scrape can be read, which VictoriaMetrics does not ensure.
COMPLETE = 'count by (job) ({job!="", __name__!~"up|scrape_.+"}) == on (job) scrape_samples_scraped'
CONFIG = "scrape_configs:\n" + "".join(
    f"- job_name: {job}\n  scrape_interval: 2s\n  scrape_timeout: 2s\n  static_configs: [{{targets: ['127.0.0.1:{PORTS[job]}']}}]\n"
    for job in ("direct", "node"))


def loopback_up():
    with socket.socket() as any_socket:
        request = struct.pack("16sh", b"lo", 1 | 0x40)	# IFF_UP | IFF_RUNNING
        fcntl.ioctl(any_socket, 0x8914, request)	# SIOCSIFFLAGS


def serve(folder):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            (path,) = glob.glob(f"{folder}/*.prom")
            with open(path, "rb") as f:
                body = f.read()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", PORTS["direct"]), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def ask(name, query):
    address = f"http://127.0.0.1:{PORTS[name]}/api/v1/query?" + urllib.parse.urlencode({"query": query})
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            return [{"labels": one["metric"], "value": float(one["value"][1])} for one in json.load(answer)["data"]["result"]]
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return []	# it has not begun to listen, or is not ready


def main(programs, folder, *queries):
    loopback_up()
    serve(folder)
    with tempfile.TemporaryDirectory() as scratch, open(f"{scratch}/log", "wb") as log:
        config = f"{scratch}/scrape.yml"
        with open(config, "w", encoding="ascii") as f:
            f.write(CONFIG)
        commands = (
            ["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{PORTS['node']}", "--collector.disable-defaults",
             "--collector.textfile", f"--collector.textfile.directory={folder}"],
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={scratch}/prometheus",
             f"--web.listen-address=127.0.0.1:{PORTS['prometheus']}"],
            ["victoria-metrics", f"-promscrape.config={config}", f"-storageDataPath={scratch}/victoria",
             f"-httpListenAddr=127.0.0.1:{PORTS['victoria']}", "-search.latencyOffset=0s"],
        )
        started = [subprocess.Popen([os.path.join(programs, command[0]), *command[1:]], stdin=subprocess.DEVNULL,
                                    stdout=log, stderr=log) for command in commands]
        end = time.monotonic() + 240
        try:
            found = {}
            for name in ("prometheus", "victoria"):
                found[name] = {}
                for query in (COMPLETE, *queries):
                    answer = ask(name, query)
                    while len({one["labels"]["job"] for one in answer}) < 2:
                        if time.monotonic() > end or any(one.poll() is not None for one in started):
                            with open(f"{scratch}/log", errors="replace") as f:
                                sys.exit(f"no answer of {name} to {query}: {f.read()[-6000:]}")
                        time.sleep(0.1)
                        answer = ask(name, query)
                    found[name][query] = answer
            json.dump(found, sys.stdout)
        finally:
            for one in started:
                one.send_signal(signal.SIGKILL)
                one.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
