# SPDX-License-Identifier: Apache-2.0
"""longshore-transport-sqlite: durable queues in one SQLite file, written from docs/protocol.md."""
import asyncio, collections, concurrent.futures, contextlib, json, os, shutil, signal, sqlite3, sys, threading, time
pool = concurrent.futures.ThreadPoolExecutor(1)  # the database's thread
def leash():
    """The end of standard input means that the host is gone."""
    while os.read(0, 4096):
        pass
    flush = threading.Thread(target=pool.shutdown, daemon=True)  # it takes nothing more, and does what it was given
    flush.start()
    flush.join(timeout=1)
    shutil.rmtree(os.environ.get("LONGSHORE_RUN_DIR", ""), ignore_errors=True)
    os._exit(0)

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
    signal.signal(number, signal.SIG_IGN)
if os.environ.get("LONGSHORE_PLUGIN") != "6c6f6e6773686f7265" or "1" not in os.environ.get("PLUGIN_PROTOCOL_VERSIONS", "").split(","):
    sys.exit("longshore-transport-sqlite is a plugin: it is started by a longshore host that speaks version 1 of the protocol")
threading.Thread(target=leash, daemon=True).start()  # before the imports that take time
import grpc
from google.protobuf.any import pack
from google.rpc.status_pb2 import Status
from longshore.transport.v1 import transport_pb2 as pb, transport_pb2_grpc as rpc

MAX_DELAY, MAX_BYTES = 30 * 24 * 3600 * 10**9, 16 << 20  # a month, exclusive; payload and headers
ITEMS, BYTES, ENTRIES, WIRE = 256, 128 << 10, 4096, 65 << 20  # the protocol's limits
NEW, CONFIGURED, CONNECTED, STATES = 0, 1, 2, ("Configure", "Connect")
ACK, REQUEUE, REJECT, RELEASE, EXTEND = range(1, 6)
NOTHING = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": False}
SETTINGS = NOTHING | {"required": ["path"], "properties": {"path": {"type": "string", "minLength": 1, "description": "the database file"}}}
PUBLISHING = pb.Publishing(confirms=pb.CONFIRM_STORED, retains=pb.RETENTION_TRANSPORT, max_delay=MAX_DELAY,
                           headers=pb.HEADER_MODE_NATIVE_BYTES, max_bytes=MAX_BYTES, repeats=True)
PROFILE = {"ack": pb.ACK_MODE_SINGLE, "requeue": pb.REQUEUE_MODE_DELAYED, "max_delay": MAX_DELAY, "reject": pb.REJECT_MODE_DROPS,
           "counts": pb.COUNT_MODE_NATIVE, "unsettled": pb.UNSETTLED_ON_DISCONNECT, "durable": True, "order": pb.ORDER_MODE_TOTAL}
class Fault(Exception):
    def __init__(self, code, message, **more):
        self.pb = pb.Fault(code="FAULT_CODE_" + code, message=message, **more)
def call(method):
    """Ends a call that raises with a status that has the fault among its details."""
    async def answer(self, request, context):
        try:
            return await method(self, request, context)
        except Exception as e:
            code = "UNAVAILABLE" if isinstance(e, sqlite3.OperationalError) else "INTERNAL"
            fault = e if isinstance(e, Fault) else Fault(code, f"{method.__name__}: {self.path}: {e}")
        code = grpc.StatusCode.ABORTED  # the host looks at the fault alone
        status = Status(code=code.value[0], message=fault.pb.message, details=[pack(fault.pb)])
        await context.abort(code, fault.pb.message, (("grpc-status-details-bin", status.SerializeToString()),))
    return answer

def check(raw, schema):
    """Returns an object of required texts, and a diagnostic for each that is wrong."""
    given, fields = None, schema.get("properties", {})
    with contextlib.suppress(ValueError, RecursionError):
        given = json.loads(raw or b"{}")
    if not isinstance(given, dict):
        return {}, [pb.Diagnostic(message="is no JSON object", fix="give one")]
    wrong = [(name, "is no known field", "remove it") for name in given if name not in fields]
    wrong += [(name, "is missing, empty, or no text", "give " + field["description"])
              for name, field in fields.items() if not isinstance(given.get(name), str) or not given[name]]
    return given, [pb.Diagnostic(path=path, message=message, fix=fix) for path, message, fix in wrong]

def in_pool(method, *args):
    return asyncio.get_running_loop().run_in_executor(pool, method, *args)
def weight(message):
    return len(message.payload) + sum(len(h.name.encode()) + len(h.value) for h in message.headers)

class Database:
    """Runs on the pool's thread, so that the heartbeat waits for no disk. due: 0 is ready, above is when, below is who holds it."""
    sql = None
    def open(self, path, patience):
        self.sql = sqlite3.connect(path, timeout=patience, check_same_thread=False)
        self.sql.executescript("""PRAGMA locking_mode = EXCLUSIVE; -- one process alone can know what is in flight
            PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
            CREATE TABLE IF NOT EXISTS message (id INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT, due INTEGER, attempts INTEGER,
                published INTEGER, headers BLOB, payload BLOB);
            CREATE INDEX IF NOT EXISTS next ON message (queue, due, id);
            UPDATE message SET due = 0 WHERE due < 0; -- held when the last process ended""")
    def write(self, *batches):
        with self.sql:  # one transaction
            for statement, rows in batches:
                self.sql.executemany(statement, rows)
    def take(self, queue, holder, room, room_bytes):
        """Takes what window and frame have room for, oldest first, and says when more is due."""
        taken, total = [], 0
        with self.sql:
            self.sql.execute("UPDATE message SET due = 0 WHERE queue = ? AND due BETWEEN 1 AND ?", (queue, time.time_ns()))
            for row, attempt, published, headers, payload in self.sql.execute("SELECT id, attempts + 1, published, headers, "
                    "payload FROM message WHERE queue = ? AND due = 0 ORDER BY id LIMIT ?", (queue, min(room, ITEMS))):
                d = pb.Delivery(name=queue, headers=pb.Message.FromString(headers).headers, payload=payload,
                                attempt=attempt, identity=b"%d" % row, published_at=published)
                if total >= room_bytes or total + (size := weight(d)) > BYTES and taken:
                    break
                taken.append((row, size, d))
                total += size
            self.sql.executemany("UPDATE message SET due = ?, attempts = attempts + 1 WHERE id = ?", [(-holder, t[0]) for t in taken])
        return taken, self.sql.execute("SELECT min(due) FROM message WHERE queue = ? AND due > 0", (queue,)).fetchone()[0]

class Subscription:
    """One task reads and never waits; another settles and delivers in turn, so that results stay behind deliveries."""
    stopped, busy, sent, bytes = False, True, 0, 0
    def __init__(self, context, registration, db):
        self.context, self.queue, self.holder, self.db = context, registration.name, registration.id + 1, db
        self.heard, self.wake, self.window, self.open = [], asyncio.Event(), pb.Credit(), {}  # open: id to row and size, ascending
        self.send, self.reader = lambda **part: context.write(pb.SubscribeResponse(**part)), asyncio.create_task(self.read())
    async def read(self):
        request = None
        while request is not grpc.aio.EOF:
            request = await self.context.read()
            self.heard.append(request)
            self.wake.set()
    async def serve(self):
        await self.send(started=pb.Started(profiles=[pb.Capabilities(address=self.queue, **PROFILE)]))
        ended = last = False
        while not last:
            self.wake.clear()
            heard, self.heard, last = self.heard, [], grpc.aio.EOF in self.heard
            await self.hear(heard)
            if not ended and (self.stopped or last or transport.closed):
                ended = True
                await self.send(ended=pb.Ended())
            room, room_bytes = self.window.messages - len(self.open), self.window.bytes - self.bytes
            able = not ended and room > 0 and room_bytes > 0
            taken, due = await in_pool(self.db.take, self.queue, self.holder, room, room_bytes) if able else ([], None)
            for self.sent, (row, size, d) in enumerate(taken, self.sent + 1):
                d.id, self.open[self.sent], self.bytes = self.sent, (row, size), self.bytes + size
            if taken:
                await self.send(deliveries=pb.Deliveries(items=[d for _, _, d in taken]))
            elif not last:
                self.busy = False
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self.wake.wait(), due and max(0.001, (due - time.time_ns()) / 1e9))
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
                answers += [answer for verdicts in r.settle.runs for answer in self.decide(verdicts)]
            elif part == "seek":
                await self.send(sought=pb.Sought(fault=Fault("UNSUPPORTED", "seek: a queue has no positions").pb))
            elif part:  # one that is not known is None
                raise Fault("INVALID", f"Subscribe: {part}: start comes once, runs are {ENTRIES} at most")
        try:
            if [row for _, _, row, _ in answers if row]:
                await in_pool(self.db.write,
                    ("DELETE FROM message WHERE id = ?", [(row,) for _, _, row, due in answers if row and due is None]),
                    ("UPDATE message SET due = ? WHERE id = ?", [(due, row) for _, _, row, due in answers if due is not None]))
                transport.wake()
        except sqlite3.Error as e:  # the database is closed, the disk full
            fault = Fault("CLOSED" if transport.closed else "INTERNAL", f"settle: {e}").pb
            for result in [result for _, result, row, _ in answers if row]:
                result.MergeFrom(pb.SettleResult(status=pb.SETTLE_STATUS_FAILED, fault=fault))
        results = [result for told, result, _, _ in answers if told or result.status != pb.SETTLE_STATUS_DONE]
        for i in range(0, len(results), ENTRIES):
            await self.send(settled=pb.Settled(results=results[i:i + ENTRIES]))
    def decide(self, run):
        at, end = run.first, min(run.first + max(run.count, 1), 1 << 64)
        for i in [i for i in self.open if at <= i < end] + [end]:
            if at < i:  # a gap
                yield True, pb.SettleResult(first=at, count=i - at, status=pb.SETTLE_STATUS_STALE), None, None
            at = i + 1
            if i == end:
                return
            row, size = self.open[i] if run.kind == EXTEND else self.open.pop(i)  # all else ends the delivery
            self.bytes -= 0 if run.kind == EXTEND else size
            if run.kind in (ACK, REJECT, RELEASE) or run.kind == REQUEUE and 0 <= run.delay < MAX_DELAY:
                row = None if run.kind == RELEASE else row  # which stays held until the stream ends
                yield (run.want_result, pb.SettleResult(first=i, count=1, status=pb.SETTLE_STATUS_DONE), row,
                       (run.delay and time.time_ns() + run.delay) if run.kind == REQUEUE else None)
            else:
                f = Fault("UNSUPPORTED", f"settle: verdict {run.kind} after {run.delay} ns, the limit is {MAX_DELAY}").pb
                yield True, pb.SettleResult(first=i, count=1, status=pb.SETTLE_STATUS_UNSUPPORTED, fault=f), None, None

class Transport(rpc.TransportServiceServicer):
    def __init__(self):
        self.state, self.path, self.db, self.closed = NEW, None, Database(), False
        self.subscriptions, self.streams = {}, collections.defaultdict(asyncio.Lock)
    def wake(self):
        for s in self.subscriptions.values():
            s.wake.set()
    def need(self, name, least, most=CONNECTED):
        if self.closed:
            raise Fault("CLOSED", f"{name}: the endpoint is closed")
        if not least <= self.state <= most:
            raise Fault("CONFLICT", f"{name}: " + ("it comes once" if self.state > most else f"{STATES[self.state]} comes before it"))
    async def only(self, stream):
        for _ in range(50):  # one that was cancelled is about to end
            if not self.streams[stream].locked():
                return self.streams[stream]
            await asyncio.sleep(0.02)
        raise Fault("CONFLICT", f"{stream}: it is open already")
    @call
    async def Describe(self, request, context):
        schemas = {"settings_schema": SETTINGS, "subscription_schema": NOTHING, "publish_schema": NOTHING}
        return pb.DescribeResponse(name="sqlite", version="0.1.0", ceilings=[pb.Capabilities(address="any", **PROFILE)],
                                   publishing=PUBLISHING, **{field: json.dumps(s).encode() for field, s in schemas.items()})
    @call
    async def Configure(self, request, context):
        self.need("Configure", NEW, NEW)
        settings, wrong = check(request.settings, SETTINGS)
        if not wrong:
            self.state, self.path = CONFIGURED, os.path.abspath(settings["path"])
        return pb.ConfigureResponse(fault=Fault("INVALID", "settings of transport sqlite", diagnostics=wrong).pb if wrong else None)
    @call
    async def Inspect(self, request, context):
        self.need("Inspect", CONFIGURED)
        readers = lambda name: [r.id for r in request.registrations if r.name == name]
        findings = lambda options: [pb.Finding(option=d.path, message=d.message, fix=d.fix) for d in check(options, NOTHING)[1]]
        return pb.InspectResponse(registrations=[
            pb.RegistrationReport(profiles=[pb.Capabilities(address=r.name, **PROFILE)], findings=findings(r.options),
                                  shares=[i for i in readers(r.name) if i != r.id]) for r in request.registrations], destinations=[
            pb.TargetReport(publishing=PUBLISHING, findings=findings(t.options), returns_to=readers(t.name), exactly=readers(t.name))
            for t in request.destinations])
    @call
    async def Connect(self, request, context):
        async with await self.only("Connect"):
            self.need("Connect", CONFIGURED, CONFIGURED)
            try:  # a predecessor that is dying is waited for
                await in_pool(self.db.open, self.path, min(3, (context.time_remaining() or 9) / 2))
                self.state = CONNECTED
                return pb.ConnectResponse()
            finally:
                if self.state != CONNECTED:  # it failed or was cancelled
                    pool.submit(lambda: self.db.sql.close())
    @call
    async def Subscribe(self, request, context):
        self.need("Subscribe", CONNECTED)
        first = await context.read()
        if first is grpc.aio.EOF or not first.HasField("start"):
            raise Fault("INVALID", "Subscribe: the first message is start")
        r = first.start.registration
        async with await self.only(f"Subscribe {r.id}"):
            s = self.subscriptions[r.id] = Subscription(context, r, self.db)
            try:
                await s.serve()
            finally:  # of a stream that was cancelled, too: what is unsettled comes again
                s.reader.cancel()
                del self.subscriptions[r.id]
                with contextlib.suppress(sqlite3.Error):  # closed: the next Connect does it
                    await in_pool(s.db.write, ("UPDATE message SET due = 0 WHERE queue = ? AND due = ?", [(r.name, -s.holder)]))
                self.wake()
    @call
    async def Publish(self, request, context):
        self.need("Publish", CONNECTED)
        async with await self.only("Publish"):
            while (frame := await context.read()) is not grpc.aio.EOF:
                if len(frame.items) > ITEMS:
                    raise Fault("INVALID", f"Publish: {len(frame.items)} messages in a frame, the limit is {ITEMS}")
                faults, outcome, now = [self.refuse(m) for m in frame.items], {"status": pb.RECEIPT_STATUS_CONFIRMED}, time.time_ns()
                rows = [(m.name, m.deliver_after and now + m.deliver_after, now, pb.Message(headers=m.headers).SerializeToString(),
                         m.payload) for m, f in zip(frame.items, faults) if not f]
                try:
                    await in_pool(self.db.write, ("INSERT INTO message VALUES (NULL, ?, ?, 0, ?, ?, ?)", rows))
                except sqlite3.Error as e:
                    outcome = {"status": pb.RECEIPT_STATUS_UNKNOWN, "fault": Fault("INTERNAL", f"publish: {e}").pb}
                self.wake()
                await context.write(pb.PublishResponse(receipts=[
                    pb.Receipt(id=m.id, **({"status": pb.RECEIPT_STATUS_REFUSED, "fault": f} if f else outcome))
                    for m, f in zip(frame.items, faults)]))
    def refuse(self, m):
        wrong, size = check(m.options, NOTHING)[1], weight(m)
        for found, code, message in (
                (self.closed, "CLOSED", "the endpoint is closed"),
                (size > MAX_BYTES, "TOO_LARGE", f"{size} bytes of payload and headers, the limit is {MAX_BYTES}"),
                (not 0 <= m.deliver_after < MAX_DELAY, "UNSUPPORTED", f"a delay of {m.deliver_after} ns, the limit is {MAX_DELAY}"),
                (wrong, "INVALID", "wrong options")):
            if found:
                return Fault(code, f"publish to {m.name}: {message}", diagnostics=wrong).pb
    @call
    async def Close(self, request, context):
        self.need("Close", NEW)
        self.closed, until = True, time.monotonic() + (request.limit / 1e9 or 10)
        self.wake()
        while any(s.busy or s.heard for s in self.subscriptions.values()) and time.monotonic() < until:
            await asyncio.sleep(0.002)
        if self.state == CONNECTED:  # behind what the pool was given
            await asyncio.wait([in_pool(self.db.sql.close)], timeout=max(0, until - time.monotonic()))
        return pb.CloseResponse()
    @call
    async def Supervise(self, request, context):
        async with await self.only("Supervise"):
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
