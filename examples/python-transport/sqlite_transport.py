# SPDX-License-Identifier: Apache-2.0
"""longshore-transport-sqlite: durable queues in one SQLite file, written from docs/protocol.md."""
import asyncio, collections, contextlib, fcntl, itertools, json, os, shutil, signal, sqlite3, sys, threading, time
from concurrent.futures import ThreadPoolExecutor

transport = None

def leash():
    """The end of standard input means that the host is gone."""
    while os.read(0, 4096):
        pass
    with contextlib.suppress(Exception):  # whatever becomes of the last publishes, the process ends
        last = transport.pool.submit(int)  # behind what the pool was given
        transport.pool.shutdown(wait=False)  # which takes nothing more: no delivery, no verdict
        last.result(timeout=1)
    shutil.rmtree(os.environ.get("LONGSHORE_RUN_DIR", ""), ignore_errors=True)
    os._exit(0)

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
    signal.signal(number, signal.SIG_IGN)
if os.environ.get("LONGSHORE_PLUGIN") != "6c6f6e6773686f7265":
    sys.exit("longshore-transport-sqlite is a transport plugin of longshore: a host starts it")
if "1" not in os.environ.get("PLUGIN_PROTOCOL_VERSIONS", "").split(","):
    sys.exit("longshore-transport-sqlite speaks version 1 of the protocol, which this host does not")
threading.Thread(target=leash, daemon=True).start()  # before the imports that take time

import grpc
from google.protobuf.any_pb2 import Any
from google.rpc.status_pb2 import Status
from longshore.transport.v1 import transport_pb2 as pb, transport_pb2_grpc as rpc

SECOND = 10**9
MAX_DELAY, MAX_BYTES = 30 * 24 * 3600 * SECOND, 16 << 20  # exclusive; of payload and headers
ITEMS, BYTES, ENTRIES, WIRE = 256, 128 << 10, 4096, 65 << 20  # the protocol's limits
NEW, CONFIGURED, CONNECTED = range(3)
ACK, REQUEUE, REJECT, RELEASE, EXTEND = range(1, 6)
DONE, STALE, UNSUPPORTED, FAILED = range(1, 5)
CONFIRMED, REFUSED, UNKNOWN = range(1, 4)
NOTHING = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": False, "properties": {}}
SETTINGS = NOTHING | {"required": ["path"], "properties": {
    "path": {"type": "string", "minLength": 1, "description": "the database file, in a folder that is there"}}}
PUBLISHING = pb.Publishing(confirms=pb.CONFIRM_STORED, retains=pb.RETENTION_TRANSPORT, max_delay=MAX_DELAY,
                           headers=pb.HEADER_MODE_NATIVE_BYTES, max_bytes=MAX_BYTES, repeats=True)

def profile(queue):
    return pb.Capabilities(
        ack=pb.ACK_MODE_SINGLE, requeue=pb.REQUEUE_MODE_DELAYED, max_delay=MAX_DELAY, reject=pb.REJECT_MODE_DROPS,
        counts=pb.COUNT_MODE_NATIVE, address=queue, unsettled=pb.UNSETTLED_ON_DISCONNECT, durable=True, order=pb.ORDER_MODE_TOTAL)

class Fault(Exception):
    def __init__(self, code, message, **more):
        super().__init__(message)
        self.pb = pb.Fault(code="FAULT_CODE_" + code, message=message, **more)

def call(method):
    """Ends a call that raises with a status that has the fault among its details."""
    async def answer(self, request, context):
        try:
            return await method(self, request, context)
        except Exception as e:
            code = "UNAVAILABLE" if isinstance(e, (OSError, sqlite3.OperationalError)) else "INTERNAL"
            fault = e if isinstance(e, Fault) else Fault(code, f"{method.__name__}: {self.path}: {e}")
        status, detail = grpc.StatusCode.ABORTED, Any()  # the host looks at the fault alone
        detail.Pack(fault.pb)
        raw = Status(code=status.value[0], message=str(fault), details=[detail]).SerializeToString()
        await context.abort(status, str(fault), (("grpc-status-details-bin", raw),))
    return answer

def check(raw, schema):
    """Returns an object of texts, and a diagnostic for each that is wrong."""
    given, fields = None, schema["properties"]
    with contextlib.suppress(ValueError, RecursionError):
        given = json.loads(raw or b"{}")
    if not isinstance(given, dict):
        return {}, [pb.Diagnostic(message="is no JSON object", fix="give one")]
    wrong = {n: ("is no known field", "remove it") for n in given if n not in fields}
    wrong |= {n: ("is no text, or empty" if n in given else "is missing", "give " + f["description"])
              for n, f in fields.items() if not isinstance(given.get(n), str) or not given[n]}
    return given, [pb.Diagnostic(path=n, message=message, fix=fix) for n, (message, fix) in wrong.items()]

def weight(message):
    return len(message.payload) + sum(len(h.name.encode()) + len(h.value) for h in message.headers)

class Database:
    """The file. Its methods run on a thread of their own, so that the event loop, and with it the heartbeat, waits for no
    disk. due is 0: ready, above: when it will be, below: held by the subscription of that number."""
    def __init__(self, path, patience):
        with contextlib.ExitStack() as undo:
            lock = undo.enter_context(open(path + ".lock", "w"))  # a file of its own: to close path would end SQLite's locks
            for left in range(int(patience * 50), -1, -1):
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # only one process can know what is in flight
                    break
                except BlockingIOError:  # one that is dying lets go
                    if not left:
                        raise Fault("CONFLICT", f"Connect: another process has {path}; end it, or set another path", transient=True)
                    time.sleep(0.02)
            self.sql = undo.enter_context(contextlib.closing(sqlite3.connect(path, check_same_thread=False)))
            self.sql.executescript("""PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                CREATE TABLE IF NOT EXISTS message (id INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT, due INTEGER,
                    attempts INTEGER, published INTEGER, headers BLOB, payload BLOB);
                CREATE INDEX IF NOT EXISTS next ON message (queue, due, id);
                UPDATE message SET due = 0 WHERE due < 0; -- in flight when the last process ended""")
            self.close = undo.pop_all().close
    def write(self, *batches):
        with self.sql:  # one transaction
            for statement, rows in batches:
                self.sql.executemany(statement, rows)
    def take(self, queue, holder, room, room_bytes):
        """Takes what window and frame have room for, oldest first, and says when more is due."""
        taken, total = [], 0
        with self.sql:
            self.sql.execute("UPDATE message SET due = 0 WHERE queue = ? AND due BETWEEN 1 AND ?", (queue, time.time_ns()))
            for row, attempts, published, headers, payload in self.sql.execute(
                    "SELECT id, attempts + 1, published, headers, payload FROM message WHERE queue = ? AND due = 0 "
                    "ORDER BY id LIMIT ?", (queue, min(room, ITEMS))):
                d = pb.Delivery(name=queue, headers=pb.Message.FromString(headers).headers, payload=payload,
                                attempt=attempts, identity=b"%d" % row, published_at=published)
                size = weight(d)
                if total >= room_bytes or taken and total + size > BYTES:
                    break
                taken.append((row, size, d))
                total += size
            self.sql.executemany("UPDATE message SET due = ?, attempts = attempts + 1 WHERE id = ?", [(-holder, t[0]) for t in taken])
        return taken, self.sql.execute("SELECT min(due) FROM message WHERE queue = ? AND due > 0", (queue,)).fetchone()[0]

class Subscription:
    """One task reads and never waits; another settles and delivers in turn, so that results stay behind deliveries."""
    numbers = itertools.count(1)
    def __init__(self, context, queue, db):
        self.context, self.queue, self.db, self.number = context, queue, db, next(self.numbers)
        self.heard, self.stopped, self.wake, self.busy = [], False, asyncio.Event(), True
        self.window, self.sent, self.open, self.bytes = pb.Credit(), 0, {}, 0  # open: id to row and size, ids ascending
    async def read(self):
        request = None
        while request is not grpc.aio.EOF:
            request = await self.context.read()
            self.heard.append(request)
            self.wake.set()
    async def send(self, **part):
        await self.context.write(pb.SubscribeResponse(**part))
    async def run(self):
        await self.send(started=pb.Started(profiles=[profile(self.queue)]))
        ended = last = False
        while not last:
            self.wake.clear()
            heard, self.heard = self.heard, []
            last = grpc.aio.EOF in heard
            await self.hear(heard)
            taken = due = None
            room, room_bytes = self.window.messages - len(self.open), self.window.bytes - self.bytes
            if not ended and (self.stopped or last or transport.closed):
                ended = True
                await self.send(ended=pb.Ended())
            elif not ended and room > 0 and room_bytes > 0:
                taken, due = await transport.run(self.db.take, self.queue, self.number, room, room_bytes)
            if taken:
                for self.sent, (row, size, d) in enumerate(taken, self.sent + 1):
                    d.id, self.open[self.sent], self.bytes = self.sent, (row, size), self.bytes + size
                await self.send(deliveries=pb.Deliveries(items=[d for _, _, d in taken]))
            elif not last:
                self.busy = False
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self.wake.wait(), due and max(0.001, (due - time.time_ns()) / SECOND))
                self.busy = True
    async def hear(self, requests):
        answers = []  # whether DONE is told, the result, the row to settle, its new due
        for r in requests:
            part = r is not grpc.aio.EOF and r.WhichOneof("part")
            if part == "credit":
                self.window = r.credit
            elif part == "stop":
                self.stopped = True
            elif part == "settle" and len(r.settle.runs) <= ENTRIES:
                answers += [answer for run in r.settle.runs for answer in self.decide(run)]
            elif part == "seek":
                await self.send(sought=pb.Sought(fault=Fault("UNSUPPORTED", "seek: a queue has no positions").pb))
            elif part:  # one that is not known is None
                raise Fault("INVALID", f"Subscribe: {part}: start comes once, runs are {ENTRIES} at most")
        try:
            if any(a[2] for a in answers):
                await transport.run(self.db.write,
                    ("DELETE FROM message WHERE id = ?", [(row,) for _, _, row, due in answers if row and due is None]),
                    ("UPDATE message SET due = ? WHERE id = ?", [(due, row) for _, _, row, due in answers if due is not None]))
                transport.wake()
        except sqlite3.Error as e:  # the database is closed, the disk full
            for _, result, row, _ in answers:
                if row:
                    result.MergeFrom(pb.SettleResult(status=FAILED, fault=Fault("INTERNAL", f"settle: {e}").pb))
        results = [result for told, result, _, _ in answers if told or result.status != DONE]
        for i in range(0, len(results), ENTRIES):
            await self.send(settled=pb.Settled(results=results[i:i + ENTRIES]))
    def decide(self, run):
        at, end = run.first, min(run.first + max(run.count, 1), 1 << 64)
        near = range(at, end) if end - at <= len(self.open) else list(self.open)
        for i in [i for i in near if i in self.open and at <= i < end] + [end]:
            if at < i:  # a gap
                yield True, pb.SettleResult(first=at, count=i - at, status=STALE), None, None
            if i < end:
                yield self.verdict(i, run)
            at = i + 1
    def verdict(self, i, run):
        row, size = self.open[i]
        if run.kind != EXTEND:  # anything else ends it
            del self.open[i]
            self.bytes -= size
        if run.kind not in (ACK, REJECT, RELEASE) and not (run.kind == REQUEUE and 0 <= run.delay < MAX_DELAY):
            fault = Fault("UNSUPPORTED", f"settle: verdict {run.kind} after {run.delay} ns, the limit is {MAX_DELAY}").pb
            return True, pb.SettleResult(first=i, count=1, status=UNSUPPORTED, fault=fault), None, None
        due = (run.delay and time.time_ns() + run.delay) if run.kind == REQUEUE else None
        row = row if run.kind != RELEASE else None  # what is released stays held until the stream ends
        return run.want_result, pb.SettleResult(first=i, count=1, status=DONE), row, due

class Transport(rpc.TransportServiceServicer):
    def __init__(self):
        self.pool, self.turn, self.locks = ThreadPoolExecutor(1), asyncio.Lock(), collections.defaultdict(asyncio.Lock)
        self.subscriptions, self.state, self.path, self.db, self.closed = {}, NEW, None, None, False
    def run(self, method, *args):
        return asyncio.get_running_loop().run_in_executor(self.pool, method, *args)
    def wake(self):
        for s in self.subscriptions.values():
            s.wake.set()
    def need(self, name, least, most=CONNECTED):
        if self.closed:
            raise Fault("CLOSED", f"{name}: the endpoint is closed")
        if self.state < least:
            raise Fault("CONFLICT", f"{name}: {('Configure', 'Connect')[self.state]} comes before it")
        if self.state > most:
            raise Fault("CONFLICT", f"{name}: it was done already")
    def only(self, stream):
        if self.locks[stream].locked():
            raise Fault("CONFLICT", f"{stream}: it is open already")
        return self.locks[stream]
    @call
    async def Describe(self, request, context):
        return pb.DescribeResponse(
            name="sqlite", version="0.1.0", settings_schema=json.dumps(SETTINGS).encode(), publishing=PUBLISHING, ceilings=[profile("any")],
            subscription_schema=json.dumps(NOTHING).encode(), publish_schema=json.dumps(NOTHING).encode())
    @call
    async def Configure(self, request, context):
        self.need("Configure", NEW, NEW)
        settings, wrong = check(request.settings, SETTINGS)
        if wrong:
            return pb.ConfigureResponse(fault=Fault("INVALID", "settings of transport sqlite", diagnostics=wrong).pb)
        self.state, self.path = CONFIGURED, os.path.abspath(settings["path"])
        return pb.ConfigureResponse()
    @call
    async def Inspect(self, request, context):
        self.need("Inspect", CONFIGURED)
        def readers(name):
            return [r.id for r in request.registrations if r.name == name]
        def findings(options):
            return [pb.Finding(option=d.path, message=d.message, fix=d.fix) for d in check(options, NOTHING)[1]]
        return pb.InspectResponse(registrations=[
            pb.RegistrationReport(profiles=[profile(r.name)], shares=[i for i in readers(r.name) if i != r.id], findings=findings(r.options))
            for r in request.registrations], destinations=[
            pb.TargetReport(publishing=PUBLISHING, returns_to=readers(t.name), exactly=readers(t.name), findings=findings(t.options))
            for t in request.destinations])
    @call
    async def Connect(self, request, context):
        async with self.turn:
            self.need("Connect", CONFIGURED, CONFIGURED)
            patience = min(3, (context.time_remaining() or 9) / 2)
            self.db = await self.run(Database, self.path, patience)  # cancelled: closed with its last reference
            self.state = CONNECTED
            return pb.ConnectResponse()
    @call
    async def Subscribe(self, request, context):
        self.need("Subscribe", CONNECTED)
        first = await context.read()
        if first is grpc.aio.EOF or not first.HasField("start"):
            raise Fault("INVALID", "Subscribe: the first message is start")
        r = first.start.registration
        if wrong := check(r.options, NOTHING)[1]:
            raise Fault("INVALID", f"Subscribe: options of {r.name}", diagnostics=wrong)
        async with self.only(f"Subscribe {r.id}"):
            s = self.subscriptions[r.id] = Subscription(context, r.name, self.db)
            reader = asyncio.create_task(s.read())
            try:
                await s.run()
            finally:  # of a stream that was cancelled, too: what is unsettled comes again
                reader.cancel()
                del self.subscriptions[r.id]
                with contextlib.suppress(sqlite3.Error):  # closed: the next Connect does it
                    await self.run(s.db.write, ("UPDATE message SET due = 0 WHERE queue = ? AND due = ?", [(r.name, -s.number)]))
                self.wake()
    @call
    async def Publish(self, request, context):
        self.need("Publish", CONNECTED)
        async with self.only("Publish"):
            while (frame := await context.read()) is not grpc.aio.EOF:
                if len(frame.items) > ITEMS:
                    raise Fault("INVALID", f"Publish: {len(frame.items)} messages in a frame, the limit is {ITEMS}")
                receipts, rows, now = [], [], time.time_ns()
                for m in frame.items:
                    fault = self.refuse(m)
                    receipts.append(pb.Receipt(id=m.id, status=REFUSED if fault else CONFIRMED, fault=fault))
                    if not fault:
                        headers, due = pb.Message(headers=m.headers).SerializeToString(), m.deliver_after and now + m.deliver_after
                        rows.append((m.name, due, now, headers, m.payload))
                try:
                    await self.run(self.db.write, ("INSERT INTO message VALUES (NULL, ?, ?, 0, ?, ?, ?)", rows))
                except sqlite3.Error as e:
                    for receipt in receipts:
                        if receipt.status == CONFIRMED:
                            receipt.MergeFrom(pb.Receipt(status=UNKNOWN, fault=Fault("INTERNAL", f"publish: {e}").pb))
                self.wake()
                await context.write(pb.PublishResponse(receipts=receipts))
    def refuse(self, m):
        """Says why a message cannot be published."""
        wrong, to = check(m.options, NOTHING)[1], f"publish to {m.name}: "
        if self.closed:
            return Fault("CLOSED", to + "the endpoint is closed").pb
        if weight(m) > MAX_BYTES:
            return Fault("TOO_LARGE", to + f"{weight(m)} bytes of payload and headers, the limit is {MAX_BYTES}").pb
        if not 0 <= m.deliver_after < MAX_DELAY:
            return Fault("UNSUPPORTED", to + f"a delay of {m.deliver_after} ns, the limit is {MAX_DELAY}").pb
        return Fault("INVALID", to + "wrong options", diagnostics=wrong).pb if wrong else None
    @call
    async def Close(self, request, context):
        self.need("Close", NEW)
        self.closed, until = True, time.monotonic() + (request.limit / SECOND or 10)
        self.wake()
        while (self.turn.locked() or any(s.busy or s.heard for s in self.subscriptions.values())) and time.monotonic() < until:
            await asyncio.sleep(0.002)
        if self.db:  # behind what the pool was given
            await asyncio.wait([self.run(self.db.close)], timeout=max(0, until - time.monotonic()))
        return pb.CloseResponse()
    @call
    async def Supervise(self, request, context):
        async with self.only("Supervise"):
            while (signal := await context.read()) is not grpc.aio.EOF:
                if signal.HasField("beat"):
                    await context.write(pb.SuperviseResponse(beat=signal.beat))

async def main():
    server = grpc.aio.server(options=[(f"grpc.max_{way}_message_length", WIRE) for way in ("receive", "send")])
    rpc.add_TransportServiceServicer_to_server(transport, server)
    socket = os.environ["PLUGIN_UNIX_SOCKET_DIR"] + "/sqlite"
    server.add_insecure_port("unix:" + socket)
    await server.start()
    print(f"1|1|unix|{socket}|grpc|", flush=True)
    await server.wait_for_termination()  # the leash ends the process

transport = Transport()
asyncio.run(main())
