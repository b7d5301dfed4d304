"""Lambda functions as processes of this machine, where LocalStack would start a container for each.

LocalStack finds this module by the entry point in ebb_lambda-1.dist-info, and takes it when LAMBDA_RUNTIME_EXECUTOR is
`ebb-node`. One environment of a function is one Node process that runs worker.mjs. The two speak over two pipes, a line
of JSON per message: the worker says `{"ready": true}` when the handler is loaded, then there is one answer per request.

A process that ends or is killed during a request is a failed invocation (`Runtime.ExitError`), one that takes longer than
the function may is killed (`Sandbox.Timedout`); in both cases the next request gets a new process, as on Lambda. Unlike on
Lambda a process is not frozen between requests, and memory is not limited.
"""

import json
import os
import selectors
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from localstack import config
from localstack.services.lambda_.invocation.executor_endpoint import StatusErrorException
from localstack.services.lambda_.invocation.lambda_models import FunctionVersion, InvocationResult
from localstack.services.lambda_.invocation.plugins import RuntimeExecutorPlugin
from localstack.services.lambda_.invocation.runtime_executor import (
    LambdaRuntimeException,
    RuntimeExecutor,
)

WORKER = Path(__file__).with_name("worker.mjs")
# A literal address: clients of S3 then put the bucket into the path, not into a host name that nobody resolves.
HOST = "127.0.0.1"
INHERITED = ("PATH", "HOME", "LANG")
CHUNK_BYTES = 1 << 16


class NodeProcesses(RuntimeExecutorPlugin):
    name = "ebb-node"

    def load(self, *args, **kwargs):
        return NodeExecutor


class Ended(Exception):
    """The worker's process is gone; its status is the message."""


class TookTooLong(Exception):
    """The worker did not answer in time."""


class Worker:
    """One process and the pipes to it."""

    def __init__(self, environment: dict[str, str], folder: Path, output) -> None:
        requests_end, self._requests = os.pipe()
        self._answers, answers_end = os.pipe()
        self._buffer = b""
        try:
            self._process = subprocess.Popen(
                [os.environ["EBB_LAMBDA_NODE"], str(WORKER), str(requests_end), str(answers_end)],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[requests_end, answers_end],
            )
        finally:
            # Only the worker may hold these ends: its own end then closes the pipe.
            os.close(requests_end)
            os.close(answers_end)

    def ask(self, request: dict, within_s: float | None) -> dict:
        line = json.dumps(request).encode() + b"\n"
        deadline = None if within_s is None else time.monotonic() + within_s
        try:
            # In pieces: a request may be larger than a pipe, and a worker that has ended reads nothing.
            while line:
                line = line[os.write(self._requests, line[:CHUNK_BYTES]) :]
        except BrokenPipeError:
            raise Ended(self._status()) from None
        return self.answer(deadline)

    def answer(self, deadline: float | None = None) -> dict:
        """The next message of the worker. `deadline` is on the monotonic clock."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._answers, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and (left <= 0 or not selector.select(left)):
                    raise TookTooLong()
                chunk = os.read(self._answers, CHUNK_BYTES)
                if not chunk:
                    raise Ended(self._status())
                self._buffer += chunk
        line, self._buffer = self._buffer.split(b"\n", 1)
        return json.loads(line)

    def _status(self) -> str:
        status = self._process.wait()
        return f"signal: {-status}" if status < 0 else f"exit status {status}"

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        """Ends the process, and forgets the pipes. Nobody may be asking."""
        self._process.kill()
        self._process.wait()
        os.close(self._requests)
        os.close(self._answers)


class NodeExecutor(RuntimeExecutor):
    def __init__(self, id: str, function_version: FunctionVersion) -> None:
        super().__init__(id=id, function_version=function_version)
        # A file and not a pipe: what is printed last is there even when the process is killed.
        self._output = tempfile.TemporaryFile(mode="a+b")
        self._worker: Worker | None = None
        self._environment: dict[str, str] = {}
        self._stopped = False
        # LocalStack stops an environment from another thread, also while it answers.
        self._lock = threading.Lock()

    def start(self, env_vars: dict[str, str]) -> None:
        code = self.function_version.config.code
        code.prepare_for_execution()
        self._folder = code.get_unzipped_code_location()
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        given = {name: str(value) for name, value in env_vars.items()}
        runtime = self.function_version.config.runtime
        own = {"LAMBDA_TASK_ROOT": str(self._folder), "AWS_EXECUTION_ENV": f"AWS_Lambda_{runtime}"}
        self._environment = inherited | given | own
        self._begin()

    def _begin(self) -> None:
        with self._lock:
            if self._stopped:
                raise LambdaRuntimeException("the environment was stopped before it had started")
            if self._worker is not None:
                self._worker.close()
            self._worker = Worker(self._environment, self._folder, self._output)
        try:
            said = self._worker.answer()
        except Ended as ended:
            said = {"error": exit_error(ended)}
        if "error" in said:
            raise StatusErrorException(
                f"the function does not load: {said['error']['errorMessage']}",
                payload=json.dumps(said["error"]).encode(),
            )

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if self._worker is not None:
                self._worker.kill()

    def invoke(self, payload: dict[str, str]) -> InvocationResult:
        request_id = payload["invoke-id"]
        timeout_s = self.function_version.config.timeout
        printed_before = self._printed()
        began = time.monotonic()
        try:
            if not self._worker.is_alive():
                self._begin()
            answer = self._worker.ask(payload, timeout_s)
        except StatusErrorException as error:
            answer = {"error": json.loads(error.payload)}
        except Ended as ended:
            answer = {"error": exit_error(ended, request_id)}
        except TookTooLong:
            self._worker.kill()
            text = f"RequestId: {request_id} Error: Task timed out after {timeout_s}.00 seconds"
            answer = {"error": {"errorType": "Sandbox.Timedout", "errorMessage": text}}
        duration_ms = 1000 * (time.monotonic() - began)
        is_error = "error" in answer
        body = json.dumps(answer["error"]) if is_error else answer["result"]
        logs = "".join(
            (
                f"START RequestId: {request_id} Version: {self.function_version.id.qualifier}\n",
                self._printed_since(printed_before),
                f"END RequestId: {request_id}\n",
                f"REPORT RequestId: {request_id}\tDuration: {duration_ms:.2f} ms\t",
                f"Memory Size: {self.function_version.config.memory_size} MB\n",
            )
        )
        return InvocationResult(request_id, body.encode(), is_error=is_error, logs=logs)

    def _printed(self) -> int:
        return os.fstat(self._output.fileno()).st_size

    def _printed_since(self, start: int) -> str:
        text = os.pread(self._output.fileno(), self._printed() - start, start).decode(errors="replace")
        return text if text == "" or text.endswith("\n") else f"{text}\n"

    def get_logs(self) -> str:
        return self._printed_since(0)

    def get_address(self) -> str:
        return HOST

    def get_endpoint_from_executor(self) -> str:
        return HOST

    def get_runtime_endpoint(self) -> str:
        # For the program that LocalStack puts into its containers; the worker does without.
        return f"http://{HOST}:{config.GATEWAY_LISTEN[0].port}/none"

    @classmethod
    def prepare_version(cls, function_version: FunctionVersion) -> None:
        runtime = function_version.config.runtime
        if runtime is None or not runtime.startswith("nodejs"):
            raise LambdaRuntimeException(f"only Node functions run here, not {runtime or 'images'}")
        function_version.config.code.prepare_for_execution()

    @classmethod
    def cleanup_version(cls, function_version: FunctionVersion) -> None:
        """LocalStack removes the code itself."""


def exit_error(ended: Ended, request_id: str | None = None) -> dict[str, str]:
    whose = "" if request_id is None else f"RequestId: {request_id} "
    return {
        "errorType": "Runtime.ExitError",
        "errorMessage": f"{whose}Error: Runtime exited with error: {ended}",
    }
