import { eventually, isThorough, seededRandom, testSeed } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { startFakeManagement } from "./fake-management.ts";
import { makeTenant, openScheduler, type Replica, type Tenant } from "./scheduler-fixture.ts";

/**
 * Tests replacing and clearing a schedule at its due time. After the response, no change of the old schedule may
 * happen on either of the two replicas.
 */
const random = seededRandom();
let takesMs = () => 0;
/** Management makes no change until this resolves. */
let held: Promise<void> | undefined;

const scheduler = await openScheduler();
const tenant = makeTenant();
await scheduler.bucket.rewrite(tenant.entries);
const replicas: Replica[] = [await scheduler.startReplica(), await scheduler.startReplica()];
const management = await startFakeManagement(scheduler.natsUrl, () => ({
  async before() {
    await held;
    await new Promise((resolve) => setTimeout(resolve, takesMs()));
  },
}));
afterAll(async () => {
  await management.stop();
  await scheduler.close();
});

const flagsAtOnce = 25;
const enough = isThorough ? 1_100 : 200;
const hourMs = 3_600_000;
/** Many times the duration of a race on an idle machine. */
const raceTimeoutMs = 150_000;

async function newFlags() {
  const flags = Array.from({ length: flagsAtOnce }, () => tenant.flag());
  await scheduler.bucket.put(...flags.map(({ entry }) => entry));
  for (const replica of replicas) await eventually(() => flags.every(replica.hasFlag));
  return flags;
}

type Flag = ReturnType<Tenant["flag"]>;

const someReplica = () => replicas[Math.floor(random() * replicas.length)] as Replica;

const post = (flag: Flag, body: object) =>
  someReplica().call(flag.path, { method: "POST", key: tenant.serverKey, body });

/** Moving average of the request duration, so that requests meet the due time on a busy machine too. */
let requestMs = 10;

async function timed<T>(request: Promise<T>): Promise<T> {
  const beganMs = performance.now();
  const answered = await request;
  requestMs += (performance.now() - beganMs - requestMs) / 10;
  return answered;
}

/** Sets a schedule with a due time shortly afterwards. */
async function soonDue(flag: Flag) {
  const dueAtMs = Date.now() + Math.ceil(3 * requestMs) + 20;
  const times = [new Date(dueAtMs).toISOString(), new Date(dueAtMs + 3).toISOString()];
  const set = await timed(post(flag, { enable_at: times[0], disable_at: times[1] }));
  // On a busy machine the time may have passed before the request is processed.
  return set.status === 201 ? { id: set.body.id as string, dueAtMs } : undefined;
}

/** Waits until a random moment at which a request meets the due time. */
async function untilAround(dueAtMs: number) {
  const spreadMs = 2 * requestMs + 20;
  const aimMs = dueAtMs - requestMs / 2 + (random() - 0.5) * spreadMs;
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, aimMs - Date.now())));
}

type Ended = { scheduleId: string; answeredAtMs: number };

/** Returns the changes that were made after the response that ended their schedule. */
function madeTooLate(ended: readonly Ended[]) {
  const endOf = new Map(ended.map(({ scheduleId, answeredAtMs }) => [scheduleId, answeredAtMs]));
  return management.made.filter(
    ({ schedule_id, madeAtMs }) => madeAtMs > (endOf.get(schedule_id) ?? Number.POSITIVE_INFINITY),
  );
}

/** Expects that some requests came before the first change was made, and some came after it. */
function expectItWasARace(ended: readonly Ended[]) {
  const met = new Set(management.made.map(({ schedule_id }) => schedule_id));
  const early = ended.filter(({ scheduleId }) => !met.has(scheduleId));
  expect(early.length).toBeGreaterThan(0);
  expect(early.length).toBeLessThan(ended.length);
}

async function race(end: (flag: Flag) => Promise<{ status: number }>): Promise<Ended[]> {
  const ended: Ended[] = [];
  const work = async (flag: Flag) => {
    while (ended.length < enough) {
      const set = await soonDue(flag);
      if (set === undefined) continue;
      await untilAround(set.dueAtMs);
      const { status } = await timed(end(flag));
      // On a busy machine a change may take longer than the maximum wait. Then the response is 503.
      if (status === 503) continue;
      expect(status).toBeLessThan(300);
      ended.push({ scheduleId: set.id, answeredAtMs: performance.now() });
    }
  };
  const flags = await newFlags();
  await Promise.all(flags.map(work));
  return ended;
}

describe("a schedule that comes due while it is", () => {
  it(
    "cleared, hundreds of times, has no effect after the response",
    async () => {
      takesMs = () => random() * 10;
      const ended = await race((flag) =>
        someReplica().call(flag.path, { method: "DELETE", key: tenant.serverKey }),
      );
      expect({ seed: testSeed, late: madeTooLate(ended) }).toEqual({ seed: testSeed, late: [] });
      expectItWasARace(ended);
    },
    raceTimeoutMs,
  );

  it(
    "replaced, hundreds of times, has no effect after the response",
    async () => {
      takesMs = () => random() * 10;
      const ended = await race((flag) =>
        post(flag, { enable_at: new Date(Date.now() + hourMs).toISOString() }),
      );
      expect({ seed: testSeed, late: madeTooLate(ended) }).toEqual({ seed: testSeed, late: [] });
      expectItWasARace(ended);
    },
    raceTimeoutMs,
  );

  it("replaced, is unchanged if its change takes longer than five seconds; the response is 503", async () => {
    const hold = Promise.withResolvers<void>();
    held = hold.promise;
    const [flag] = (await newFlags()) as [Flag];
    const inHours = (hours: number) => new Date(Date.now() + hours * hourMs).toISOString();
    const set = await post(flag, { enable_at: inHours(0.5) });
    // Earlier than the schedules that the other tests have left.
    await scheduler.stepClock(hourMs / 2);
    await eventually(() => management.received.some(({ flag_id }) => flag_id === flag.flagId));
    const rejected = await post(flag, { enable_at: inHours(2) });
    const { body } = await someReplica().call(flag.path, { key: tenant.serverKey });
    hold.resolve();
    expect(rejected.status).toBe(503);
    expect(rejected.body.error.code).toBe("SERVER_002");
    expect(rejected.headers.get("retry-after")).toBe("1");
    expect(body.id).toBe(set.body.id);
    await eventually(async () => {
      const read = await someReplica().call(flag.path, { key: tenant.serverKey });
      return read.body.status === "applied";
    });
  });
});
