import { deadLetterStream, type UsageLastSeen, usageStream } from "@halyard/contracts";
import { publishLastSeen } from "@halyard/reports";
import { connectAsSuperuser, eventually } from "@halyard/testing";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { v7 as uuidv7 } from "uuid";
import { openManagement, operatorToken, seedProject } from "../management-fixture.ts";

let project: Awaited<ReturnType<typeof seedProject>>;

const management = await openManagement();
const connection = await connect({ servers: management.natsUrl });
afterAll(async () => {
  await connection.close();
  await management.close();
});
beforeEach(async () => {
  project = await seedProject(management);
});

/** Publishes last-seen times and waits until management has processed them. */
async function deliver(seen: Partial<UsageLastSeen>): Promise<void> {
  const nothing = { keys: [], environments: [], flags: [] };
  await publishLastSeen(jetstream(connection), { ...nothing, ...seen });
  await untilTaken();
}

async function untilTaken(): Promise<void> {
  const manager = await jetstreamManager(connection);
  await eventually(async () => {
    const info = await manager.consumers.info(usageStream.name, usageStream.lastSeen.consumer);
    return info.num_pending === 0 && info.num_ack_pending === 0;
  });
}

const call = (path: string, options: { method?: string; body?: unknown } = {}) =>
  management.call(path, { key: project.serverKey, ...options });

const createFlag = async (key = `flag-${uuidv7()}`) =>
  (await call("/api/v1/flags", { method: "POST", body: { key, name: "A flag" } })).body;

/** Creates a flag a minute ago, so that the times shortly after its creation are in the past. */
async function createFlagEarlier() {
  const { now } = management.clock;
  management.clock.now = () => new Date(Date.now() - 60_000);
  try {
    return await createFlag();
  } finally {
    management.clock.now = now;
  }
}

/** Returns the last evaluation of a flag, after checking that `GET` and the list agree. */
async function lastEvaluated(flag: { id: string }): Promise<string | null> {
  const read = (await call(`/api/v1/flags/${flag.id}`)).body.last_evaluated_at;
  const { flags } = (await call("/api/v1/flags")).body;
  expect(flags.find(({ id }: { id: string }) => id === flag.id).last_evaluated_at).toBe(read);
  return read;
}

const keyIdIn = (key: string) => key.slice(3, 19);
const later = (instant: string, ms: number) => new Date(Date.parse(instant) + ms).toISOString();

describe("given a flag", () => {
  it("has no last evaluation until one is reported", async () => {
    const flag = await createFlag();
    expect(flag.last_evaluated_at).toBeNull();
    expect(await lastEvaluated(flag)).toBeNull();
    const environment_id = project.environmentId;
    const evaluated_at = flag.created_at;
    await deliver({ flags: [{ environment_id, flag_id: flag.id, evaluated_at }] });
    expect(await lastEvaluated(flag)).toBe(evaluated_at);
  });

  it("is evaluated by responses with all flags since its creation, but not by earlier ones", async () => {
    const flag = await createFlag();
    const { environmentId: environment_id } = project;
    await deliver({ environments: [{ environment_id, evaluated_at: later(flag.created_at, -1) }] });
    expect(await lastEvaluated(flag)).toBeNull();
    await deliver({ environments: [{ environment_id, evaluated_at: flag.created_at }] });
    expect(await lastEvaluated(flag)).toBe(flag.created_at);
  });

  it("returns the later of its own evaluation and that of all flags", async () => {
    const flag = await createFlagEarlier();
    const environment_id = project.environmentId;
    const at = (ms: number) => later(flag.created_at, ms);
    await deliver({
      environments: [{ environment_id, evaluated_at: at(10) }],
      flags: [{ environment_id, flag_id: flag.id, evaluated_at: at(5) }],
    });
    expect(await lastEvaluated(flag)).toBe(at(10));
    await deliver({ flags: [{ environment_id, flag_id: flag.id, evaluated_at: at(15) }] });
    expect(await lastEvaluated(flag)).toBe(at(15));
  });

  it("keeps the latest time, regardless of order and repetition", async () => {
    const flag = await createFlagEarlier();
    const environment_id = project.environmentId;
    const seenAt = (ms: number) => ({
      environment_id,
      flag_id: flag.id,
      evaluated_at: later(flag.created_at, ms),
    });
    await deliver({ flags: [seenAt(2), seenAt(6), seenAt(4)] });
    await deliver({ flags: [seenAt(3)] });
    await deliver({ flags: [seenAt(6)] });
    expect(await lastEvaluated(flag)).toBe(later(flag.created_at, 6));
  });

  it("returns the last evaluation in the environment of the requesting key only", async () => {
    const flag = await createFlag();
    const environment_id = project.otherEnvironmentId;
    const evaluated_at = flag.created_at;
    await deliver({
      environments: [{ environment_id, evaluated_at }],
      flags: [{ environment_id, flag_id: flag.id, evaluated_at }],
    });
    expect(await lastEvaluated(flag)).toBeNull();
  });

  it("has the same version after an evaluation, so that If-Match still holds, and another ETag", async () => {
    const flag = await createFlag();
    const path = `/api/v1/flags/${flag.id}`;
    const before = await call(path);
    const environment_id = project.environmentId;
    await deliver({ flags: [{ environment_id, flag_id: flag.id, evaluated_at: flag.created_at }] });
    const after = await call(path);
    expect(after.headers.get("etag")).not.toBe(before.headers.get("etag"));
    expect(after.body).toEqual({ ...before.body, last_evaluated_at: flag.created_at });
    const changed = await management.call(path, {
      method: "PATCH",
      key: project.serverKey,
      body: { name: "Changed" },
      headers: { "if-match": before.headers.get("etag") ?? "" },
    });
    expect(changed.status).toBe(200);
    expect(changed.body).toMatchObject({ name: "Changed", last_evaluated_at: flag.created_at });
    const unchanged = await call(path, { method: "PATCH", body: {} });
    expect(unchanged.body).toEqual(changed.body);
  });

  it("loses its last evaluation on deletion, and a later report does not restore it", async () => {
    const flag = await createFlag();
    const seen = {
      environment_id: project.environmentId,
      flag_id: flag.id,
      evaluated_at: flag.created_at,
    };
    await deliver({ flags: [seen] });
    await call(`/api/v1/flags/${flag.id}`, { method: "DELETE" });
    await deliver({ flags: [seen] });
    expect(await management.sql`select from flags_last_seen where flag_id = ${flag.id}`).toEqual(
      [],
    );
  });
});

describe("given a key", () => {
  const shownBy = async (path: string) =>
    (await management.call(path, { key: operatorToken })).body;

  it("has a last use in `GET` and in the list", async () => {
    const path = `/api/v1/projects/${project.projectId}/environments/${project.environmentId}/keys`;
    const id = keyIdIn(project.clientKey);
    expect((await shownBy(`${path}/${id}`)).last_used_at).toBeNull();
    const used_at = new Date(Date.now() - 1_000).toISOString();
    await deliver({ keys: [{ key_id: id, used_at }] });
    expect((await shownBy(`${path}/${id}`)).last_used_at).toBe(used_at);
    const { keys } = await shownBy(path);
    expect(keys.find((key: { id: string }) => key.id === id).last_used_at).toBe(used_at);
  });

  it.each([
    { which: "serverKey", status: 200 },
    { which: "clientKey", status: 403 },
  ] as const)(
    "has a use of this API recorded within seconds, regardless of the response: $which, $status",
    async ({ which, status }) => {
      const path = `/api/v1/projects/${project.projectId}/environments/${project.environmentId}/keys`;
      const begunMs = Date.now();
      const key = project[which];
      expect((await management.call("/api/v1/flags", { key })).status).toBe(status);
      const used = await eventually(
        async () => (await shownBy(`${path}/${keyIdIn(key)}`)).last_used_at ?? undefined,
      );
      expect(Date.parse(used)).toBeGreaterThanOrEqual(begunMs);
    },
  );
});

const admin = connectAsSuperuser(management.adminUrl, "management");
afterAll(() => admin.end());

describe("given a key that is removed while its use is recorded", () => {
  const isLockAwaited = async () => {
    const waiting = await admin`
      select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`;
    return waiting.length > 0;
  };

  it("records the use without an error", async () => {
    const id = keyIdIn(project.clientKey);
    const retries = async () => {
      const metric = await management.metrics.getSingleMetric("halyard_queue_retries_total")?.get();
      return metric?.values ?? [];
    };
    const before = await retries();
    let recording: Promise<void> | undefined;
    let isRecorded = false;
    await admin.begin(async (removal) => {
      await removal`delete from api_keys where id = ${id}`;
      recording = deliver({ keys: [{ key_id: id, used_at: new Date().toISOString() }] }).then(
        () => {
          isRecorded = true;
        },
      );
      await eventually(async () => isRecorded || (await isLockAwaited()));
    });
    await recording;
    expect(await retries()).toEqual(before);
  });

  it("removes the key without an error", async () => {
    const { environmentId } = project;
    await admin`update environments set deleted_at = now() where id = ${environmentId}`;
    let removing: Promise<unknown> | undefined;
    let isRemoved = false;
    await admin.begin(async (recording) => {
      await recording`
        insert into keys_last_seen values (${keyIdIn(project.clientKey)}, now())`;
      removing = admin`select from remove_keys_of_deleted(${environmentId}, 100)`.then(() => {
        isRemoved = true;
      });
      await eventually(async () => isRemoved || (await isLockAwaited()));
    });
    await removing;
    expect(await admin`select from api_keys where environment_id = ${environmentId}`).toEqual([]);
  });
});

describe("given incorrect messages", () => {
  it("ignores unknown keys, environments and flags, and records the others", async () => {
    const flag = await createFlag();
    const at = flag.created_at;
    const environment_id = project.environmentId;
    await deliver({
      keys: [{ key_id: "nobody's", used_at: at }],
      environments: [{ environment_id: uuidv7(), evaluated_at: at }],
      flags: [
        { environment_id, flag_id: uuidv7(), evaluated_at: at },
        { environment_id, flag_id: flag.id, evaluated_at: at },
      ],
    });
    expect(await lastEvaluated(flag)).toBe(at);
  });

  it("records a future time as the current time", async () => {
    const flag = await createFlag();
    const inAnHour = later(flag.created_at, 3_600_000);
    await deliver({
      flags: [{ environment_id: project.environmentId, flag_id: flag.id, evaluated_at: inAnHour }],
    });
    expect(Date.parse((await lastEvaluated(flag)) ?? "")).toBeLessThan(Date.parse(inAnHour));
  });

  it("dead-letters invalid messages and continues", async () => {
    const client = jetstream(connection);
    await client.publish(usageStream.lastSeen.subject, "no JSON");
    await client.publish(usageStream.lastSeen.subject, JSON.stringify({ keys: "none" }));
    const flag = await createFlag();
    const evaluated_at = flag.created_at;
    await deliver({
      flags: [{ environment_id: project.environmentId, flag_id: flag.id, evaluated_at }],
    });
    expect(await lastEvaluated(flag)).toBe(evaluated_at);
    const manager = await jetstreamManager(connection);
    const { state } = await manager.streams.info(deadLetterStream.name);
    expect(state.messages).toBe(2);
  });
});

describe("given many flags", () => {
  it("records thousands of flags from one message", async () => {
    const { projectId, environmentId } = project;
    const ids = Array.from({ length: 2_000 }, () => uuidv7());
    const { sql } = management;
    await sql`
      insert into flags
      select id, ${projectId}, 'many-' || id, 'Many', '', 'release', 1, now(), now(), now()
      from unnest(${ids}::uuid[]) as id`;
    await sql`
      insert into flag_states
      select id, ${environmentId},
        '{"enabled": false, "rollout_percentage": 100, "targeting_rules": []}', 1, now()
      from unnest(${ids}::uuid[]) as id`;
    const evaluated_at = new Date(Date.now() - 1_000).toISOString();
    await deliver({
      flags: ids.map((flag_id) => ({ environment_id: environmentId, flag_id, evaluated_at })),
    });
    const { flags } = (await call("/api/v1/flags")).body;
    expect(flags).toHaveLength(2_000);
    for (const flag of flags) expect(flag.last_evaluated_at).toBe(evaluated_at);
  });
});

describe("the list of flags with stale_days", () => {
  const dayMs = 86_400_000;
  const presentClock = () => new Date();
  afterEach(() => {
    management.clock.now = presentClock;
  });

  async function keysOf(query: string): Promise<string[]> {
    const { status, body } = await call(`/api/v1/flags?${query}`);
    expect(status).toBe(200);
    return body.flags.map(({ key }: { key: string }) => key);
  }

  /** Moves the clock of requests. Evaluations keep the times of their messages. */
  const passDays = (days: number) => {
    management.clock.now = () => new Date(Date.now() + days * dayMs);
  };

  it("has flags that no environment has evaluated for that time, and that are old enough", async () => {
    passDays(-10);
    const used = await createFlag("used");
    await createFlag("unused");
    const elsewhere = await createFlag("used-elsewhere");
    passDays(0);
    await createFlag("young");
    const evaluated_at = new Date().toISOString();
    await deliver({
      flags: [
        { environment_id: project.environmentId, flag_id: used.id, evaluated_at },
        { environment_id: project.otherEnvironmentId, flag_id: elsewhere.id, evaluated_at },
      ],
    });
    expect(await keysOf("stale_days=7")).toEqual(["unused"]);
    expect(await keysOf("stale_days=11")).toEqual([]);
    passDays(8);
    expect(await keysOf("stale_days=7")).toEqual(["unused", "used", "used-elsewhere", "young"]);
    expect(await keysOf("stale_days=7&key=used")).toEqual(["used"]);
    expect(await keysOf("stale_days=7&limit=2")).toEqual(["unused", "used"]);
  });

  it("is empty if all flags of one environment were requested in that time", async () => {
    passDays(-10);
    await createFlag("a-flag");
    passDays(0);
    expect(await keysOf("stale_days=7")).toEqual(["a-flag"]);
    const environment_id = project.otherEnvironmentId;
    await deliver({ environments: [{ environment_id, evaluated_at: new Date().toISOString() }] });
    expect(await keysOf("stale_days=7")).toEqual([]);
    passDays(8);
    expect(await keysOf("stale_days=7")).toEqual(["a-flag"]);
  });

  it("leaves out flags that another flag requires in any environment", async () => {
    const required = await createFlag("z-required");
    const requiring = await createFlag("z-requiring");
    const path = `/api/v1/flags/${requiring.id}/environments/${project.otherEnvironmentId}`;
    const require = (requires: object[]) => call(path, { method: "PATCH", body: { requires } });
    expect((await require([{ flag: required.key, is: "on" }])).status).toBe(200);
    passDays(8);
    const stale = async () => (await keysOf("stale_days=7")).filter((key) => key.startsWith("z-"));
    expect(await stale()).toEqual(["z-requiring"]);
    await require([]);
    expect(await stale()).toEqual(["z-required", "z-requiring"]);
  });

  it.each(["0", "366", "1.5", "many"])("rejects stale_days=%s", async (days) => {
    const answer = await call(`/api/v1/flags?stale_days=${days}`);
    expect(answer.body.error.code).toBe("VALIDATION_001");
  });
});

describe("given a session of a person", () => {
  const idleInMs = 60 * 60 * 1_000;

  /** Writes a session that ends in an hour if it is not used. */
  async function givenSession(): Promise<string> {
    const [personId, id] = [uuidv7(), uuidv7()];
    await management.sql`insert into people (id, created_at) values (${personId}, now())`;
    await management.sql`
      insert into sessions (id, secret_sha256, person_id, via, groups, address, user_agent,
        signed_in_at, confirmed_at, expires_at, idle_until)
      values (${id}, ${"0".repeat(64)}, ${personId}, 'passkey', '{}', '127.0.0.1', 'a browser',
        now(), now(), now() + interval '7 days', now() + interval '1 hour')`;
    return id;
  }

  async function idleMs(id: string): Promise<number> {
    const [session] = await management.sql<{ idleUntil: Date }[]>`
      select idle_until as "idleUntil" from sessions where id = ${id}`;
    return (session?.idleUntil.getTime() ?? 0) - Date.now();
  }

  it("moves the end of the unused session to twelve hours after the use, on every service", async () => {
    const id = await givenSession();
    await deliver({ keys: [{ key_id: id, used_at: new Date().toISOString() }] });
    expect(await idleMs(id)).toBeGreaterThan(11 * idleInMs);
    const address = { kind: "session", sessionId: id } as const;
    await eventually(() => management.people.valueOf(address) !== undefined);
  });

  it("does not move it for a use of long ago, which an outage has delayed", async () => {
    const id = await givenSession();
    const used_at = new Date(Date.now() - 30 * 60 * 1_000).toISOString();
    await deliver({ keys: [{ key_id: id, used_at }] });
    expect(await idleMs(id)).toBeLessThanOrEqual(idleInMs);
  });
});
