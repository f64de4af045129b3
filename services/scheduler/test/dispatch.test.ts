import { type ScheduleDue, scheduleStream } from "@halyard/contracts";
import { publishSigned } from "@halyard/jetstream";
import { eventually, testMessageSigner } from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { type Behavior, startFakeManagement } from "./fake-management.ts";
import { makeTenant, openScheduler, type Replica } from "./scheduler-fixture.ts";

/** Sending due changes and recording their outcomes. */
/** The behavior of the fake management in the current test. */
let behavior: Behavior = {};

const scheduler = await openScheduler();
const tenant = makeTenant();
await scheduler.bucket.rewrite(tenant.entries);
const replica = await scheduler.startReplica();
await eventually(() => replica.hasKey(tenant.serverKey));
const management = await startFakeManagement(scheduler.natsUrl, () => behavior);
afterAll(async () => {
  await management.stop();
  await scheduler.close();
});
afterEach(async () => {
  behavior = {};
  await scheduler.stepClock(0);
});

const hourMs = 3_600_000;
const minuteMs = 60_000;

async function newFlag() {
  const flag = tenant.flag();
  await scheduler.bucket.put(flag.entry);
  await eventually(() => replica.hasFlag(flag));
  return flag;
}

type Flag = Awaited<ReturnType<typeof newFlag>>;

async function schedule(flag: Flag, inMs: { enable?: number; disable?: number }) {
  const timeOf = (ms: number) => new Date(Date.now() + ms).toISOString();
  const body = {
    ...(inMs.enable === undefined ? {} : { enable_at: timeOf(inMs.enable) }),
    ...(inMs.disable === undefined ? {} : { disable_at: timeOf(inMs.disable) }),
  };
  const set = await replica.call(flag.path, { method: "POST", key: tenant.serverKey, body });
  expect(set.status).toBe(201);
  return set.body;
}

/** Sets a schedule that switches the flag on, and makes it due. */
async function scheduleDue(flag: Flag, inMs: { disable?: number } = {}) {
  const set = await schedule(flag, { enable: hourMs, ...inMs });
  await scheduler.stepClock(hourMs);
  return set;
}

const read = async (flag: Flag) => (await replica.call(flag.path, { key: tenant.serverKey })).body;

const ended = (flag: Flag, status = "applied") =>
  eventually(async () => (await read(flag)).status === status && (await read(flag)));

const of = (flag: Flag, all: readonly ScheduleDue[] = management.made) =>
  all.filter(({ flag_id }) => flag_id === flag.flagId);

const actionsFor = (flag: Flag, all?: readonly ScheduleDue[]) =>
  of(flag, all).map(({ action }) => action);

describe("a due change", () => {
  it("is sent to management, and its outcome is recorded and returned", async () => {
    const latenessMs = 250;
    behavior = {
      outcome: ({ due_at }) => ({
        applied_at: new Date(Date.parse(due_at) + latenessMs).toISOString(),
      }),
    };
    const flag = await newFlag();
    const set = await scheduleDue(flag);
    const done = await ended(flag);
    expect(of(flag)).toMatchObject([
      {
        schedule_id: set.id,
        organization_id: tenant.organizationId,
        project_id: tenant.projectId,
        flag_id: flag.flagId,
        environment_id: flag.environmentId,
        action: "enable",
        due_at: set.enable_at,
        user_id: tenant.userId,
      },
    ]);
    const [change] = done.changes;
    const applied_at = new Date(Date.parse(change.at) + latenessMs).toISOString();
    expect(change).toMatchObject({ state: "applied", applied_at, lateness_ms: latenessMs });
    await eventually(async () =>
      /halyard_scheduled_change_lateness_seconds_count\{service="scheduler"\} [1-9]/.test(
        await replica.metrics.metrics(),
      ),
    );
  });

  it("is not sent before its due time", async () => {
    const [flag, earlier] = await Promise.all([newFlag(), newFlag()]);
    await schedule(flag, { enable: hourMs });
    await schedule(earlier, { enable: hourMs / 2 });
    await scheduler.stepClock(hourMs / 2);
    await ended(earlier);
    expect(of(flag, management.received)).toEqual([]);
    await scheduler.stepClock(hourMs);
    await ended(flag);
  });

  it("follows the earlier change of its schedule, even if both are overdue", async () => {
    const windows = await Promise.all(Array.from({ length: 10 }, newFlag));
    for (const [index, flag] of windows.entries())
      await schedule(
        flag,
        index % 2 === 0
          ? { enable: hourMs, disable: 2 * hourMs }
          : { enable: 2 * hourMs, disable: hourMs },
      );
    await scheduler.stepClock(3 * hourMs);
    for (const flag of windows) await ended(flag);
    expect(windows.map((flag) => actionsFor(flag))).toEqual(
      windows.map((_flag, index) =>
        index % 2 === 0 ? ["enable", "disable"] : ["disable", "enable"],
      ),
    );
  });

  it("is cancelled with the other change of its schedule if the flag was deleted", async () => {
    behavior = { outcome: () => ({ outcome: "cancelled", applied_at: null, reason: "gone" }) };
    const flag = await newFlag();
    await scheduleDue(flag, { disable: 2 * hourMs });
    const done = await ended(flag, "cancelled");
    expect(done.changes).toMatchObject([{ state: "cancelled" }, { state: "cancelled" }]);
  });

  it("does not prevent the other change of its schedule if it fails", async () => {
    behavior = {
      outcome: ({ action }) =>
        action === "enable" ? { outcome: "failed", applied_at: null, reason: "broken" } : {},
    };
    const flag = await newFlag();
    await schedule(flag, { enable: hourMs, disable: hourMs + 100 });
    await scheduler.stepClock(hourMs + 100);
    const done = await ended(flag);
    expect(done.changes).toMatchObject([
      { action: "enable", state: "failed", lateness_ms: null },
      { action: "disable", state: "applied" },
    ]);
  });
});

describe("several replicas", () => {
  let more: Replica[] = [];
  afterEach(async () => {
    await Promise.all(more.map((replica) => replica.stop()));
  });

  it("share the due changes and send none twice", async () => {
    more = await Promise.all([1, 2, 3].map(() => scheduler.startReplica()));
    const flags = await Promise.all(Array.from({ length: 60 }, newFlag));
    for (const flag of flags) await schedule(flag, { enable: hourMs, disable: hourMs + 1 });
    await scheduler.stepClock(2 * hourMs);
    for (const flag of flags) await ended(flag);
    for (const flag of flags)
      expect(actionsFor(flag, management.received)).toEqual(["enable", "disable"]);
  });

  it("send a change without an outcome again once", async () => {
    behavior = { publishesOutcome: () => false };
    more = await Promise.all([1, 2, 3].map(() => scheduler.startReplica()));
    const flags = await Promise.all(Array.from({ length: 60 }, newFlag));
    for (const flag of flags) await schedule(flag, { enable: hourMs });
    await scheduler.stepClock(hourMs);
    await eventually(() => flags.every((flag) => actionsFor(flag).length === 1));
    behavior = {};
    await scheduler.stepClock(hourMs + 31_000);
    for (const flag of flags) await ended(flag);
    for (const flag of flags)
      expect(actionsFor(flag, management.received)).toEqual(["enable", "enable"]);
  });
});

describe("setting the clock", () => {
  it("forwards by an hour makes the changes of that hour due once", async () => {
    const flag = await newFlag();
    await schedule(flag, { enable: hourMs / 2, disable: 2 * hourMs });
    await scheduler.stepClock(hourMs);
    await eventually(async () => (await read(flag)).changes[0].state === "applied");
    await scheduler.stepClock(0);
    await scheduler.stepClock(hourMs);
    expect((await read(flag)).changes).toMatchObject([{ state: "applied" }, { state: "pending" }]);
    await scheduler.stepClock(3 * hourMs);
    await ended(flag);
    expect(actionsFor(flag, management.received)).toEqual(["enable", "disable"]);
  });

  it("backwards by an hour delays changes that are not due yet, and repeats none", async () => {
    const [done, waiting, marker] = await Promise.all([newFlag(), newFlag(), newFlag()]);
    await scheduleDue(done);
    await ended(done);
    await schedule(waiting, { enable: hourMs + minuteMs });
    await scheduler.stepClock(0);
    // When this change is made, the scheduler has polled with the new clock.
    await schedule(marker, { enable: minuteMs });
    await scheduler.stepClock(minuteMs);
    await ended(marker);
    expect((await read(waiting)).status).toBe("pending");
    await scheduler.stepClock(hourMs + minuteMs);
    await ended(waiting);
    for (const flag of [done, waiting, marker])
      expect(actionsFor(flag, management.received)).toEqual(["enable"]);
  });
});

describe("a sent change without an outcome", () => {
  /** More than the time after which a change is sent again for the first time. */
  const firstPauseMs = 31_000;

  it("is sent again if the process crashed between marking and sending", async () => {
    const flag = await newFlag();
    await schedule(flag, { enable: hourMs });
    await scheduler.admin`
      update scheduled_changes
      set state = 'sent', send_count = 1, send_again_at = present_time() + interval '30 seconds'
      where flag_id = ${flag.flagId}`;
    await scheduler.stepClock(firstPauseMs);
    await ended(flag);
    expect(actionsFor(flag, management.received)).toEqual(["enable"]);
  });

  it("is sent again if its outcome was lost, and is made once", async () => {
    let outcomes = 0;
    behavior = { publishesOutcome: () => ++outcomes > 1 };
    const flag = await newFlag();
    await scheduleDue(flag);
    await eventually(() => outcomes === 1);
    await scheduler.stepClock(hourMs + firstPauseMs);
    await ended(flag);
    expect(actionsFor(flag)).toEqual(["enable"]);
    expect(actionsFor(flag, management.received)).toEqual(["enable", "enable"]);
  });

  it("is sent again if the stream was deleted", async () => {
    let publishesOutcome = false;
    behavior = { publishesOutcome: () => publishesOutcome };
    const flag = await newFlag();
    await scheduleDue(flag);
    await eventually(() => actionsFor(flag).length === 1);
    publishesOutcome = true;
    await replaceStream("SCHEDULE");
    await scheduler.stepClock(hourMs + firstPauseMs);
    await ended(flag);
    expect(actionsFor(flag)).toEqual(["enable"]);
  });

  it("is sent again at doubling intervals while management is slow, and is made once", async () => {
    const held = Promise.withResolvers<void>();
    behavior = { before: () => held.promise };
    const [flag, marker] = await Promise.all([newFlag(), newFlag()]);
    const isReceived = (times: number) =>
      eventually(() => of(flag, management.received).length === times);
    await schedule(marker, { enable: hourMs + 2 * firstPauseMs });
    await scheduleDue(flag);
    await isReceived(1);
    await scheduler.stepClock(hourMs + firstPauseMs);
    await isReceived(2);
    // The second pause is a minute.
    await scheduler.stepClock(hourMs + 2 * firstPauseMs);
    await eventually(() => of(marker, management.received).length === 1);
    expect(of(flag, management.received)).toHaveLength(2);
    await scheduler.stepClock(hourMs + 4 * firstPauseMs);
    await isReceived(3);
    held.resolve();
    await Promise.all([ended(flag), ended(marker)]);
    expect(actionsFor(flag)).toEqual(["enable"]);
  });

  /** Deletes a stream, and waits until it was created again. */
  async function replaceStream(name: string) {
    const connection = await connect({ servers: scheduler.natsUrl });
    await connection.request(`$JS.API.STREAM.DELETE.${name}`);
    await eventually(async () => {
      const answer = await connection.request(`$JS.API.STREAM.INFO.${name}`);
      return answer.json<{ error?: unknown }>().error === undefined;
    });
    await connection.close();
  }
});

describe("an overdue change", () => {
  it("appears in the metrics until it is made", async () => {
    const overdue = async () => {
      const [line] =
        (await replica.metrics.metrics()).match(/^halyard_scheduled_change_overdue.*$/m) ?? [];
      return Number(line?.split(" ")[1]);
    };
    const held = Promise.withResolvers<void>();
    behavior = { before: () => held.promise };
    const flag = await newFlag();
    await scheduleDue(flag);
    await scheduler.stepClock(hourMs + minuteMs);
    await eventually(async () => (await overdue()) >= 60);
    held.resolve();
    await ended(flag);
    await eventually(async () => (await overdue()) === 0);
  });
});

describe("a forged answer", () => {
  it("does not end a change", async () => {
    const due = Promise.withResolvers<ScheduleDue>();
    const held = Promise.withResolvers<void>();
    const before = (message: ScheduleDue) => {
      due.resolve(message);
      return held.promise;
    };
    behavior = { before };
    const flag = await newFlag();
    await scheduleDue(flag);
    const { id, schedule_id } = await due.promise;
    const connection = await connect({ servers: scheduler.natsUrl });
    const answer = { id, schedule_id, outcome: "failed", applied_at: null, reason: "forged" };
    const { subject } = scheduleStream.resolved;
    await jetstream(connection).publish(subject, JSON.stringify(answer));
    await eventually(async () => /"forged"[^}]*\} 1/.test(await replica.metrics.metrics()));
    held.resolve();
    await ended(flag);
    expect((await read(flag)).changes).toMatchObject([{ state: "applied" }]);
    await connection.close();
  });
});

describe("a repeated answer", () => {
  it("changes nothing, and an unreadable answer is dead-lettered", async () => {
    const flag = await newFlag();
    await scheduleDue(flag, { disable: 2 * hourMs });
    await eventually(async () => (await read(flag)).changes[0].state === "applied");
    const before = await read(flag);
    const [due] = of(flag);
    const connection = await connect({ servers: scheduler.natsUrl });
    const again = { id: due?.id, schedule_id: due?.schedule_id, applied_at: null, reason: "late" };
    const { subject } = scheduleStream.resolved;
    for (const payload of [JSON.stringify({ ...again, outcome: "failed" }), "nonsense"])
      await publishSigned(jetstream(connection), testMessageSigner("management"), {
        ...{ subject, payload },
      });
    await eventually(async () =>
      /messages_processed_total\{[^}]*"set_aside"[^}]*\} 1/.test(await replica.metrics.metrics()),
    );
    expect(await read(flag)).toEqual(before);
    await connection.close();
  });
});
