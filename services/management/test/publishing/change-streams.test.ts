import { randomUUID } from "node:crypto";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import {
  type EventStream,
  eventually,
  natsServerBinary,
  openEventStream,
  type RestartablePostgres,
  type ServiceProcess,
  startRestartableNats,
  startRestartablePostgres,
  startServiceProcess,
} from "@halyard/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import postgres from "postgres";
import { Registry } from "prom-client";
import { v7 as uuidv7 } from "uuid";
import type { AuditEntry } from "../../src/audit/audit-log.ts";
import { recordAudit } from "../../src/audit/audit-store.ts";
import { createChangeStreams } from "../../src/publishing/change-streams.ts";
import { type Management, openManagement, operatorToken } from "../management-fixture.ts";
import { tenancyOf } from "../tenancy-fixture.ts";

/** Tests the stream of a project's changes, with one or two processes of management over one database. */
const opened: EventStream[] = [];

const management = await openManagement();
const given = tenancyOf(management);
const admin = postgres(management.adminUrl, { max: 2, connection: { search_path: "management" } });
afterAll(async () => {
  await admin.end();
  await management.close();
});
afterEach(() => {
  for (const stream of opened.splice(0)) stream.close();
});

type Scope = Awaited<ReturnType<ReturnType<typeof tenancyOf>["scope"]>>;
type Change = { id: string; action: string; actor: { email: string } };

const pathOf = (scope: Scope) => `/api/v1/projects/${scope.project.id}/changes`;

async function open(
  scope: Scope,
  {
    at = management.url,
    key = scope.serverKey,
    after,
  }: { at?: string; key?: string; after?: string | undefined } = {},
): Promise<EventStream> {
  const stream = await openEventStream(`${at}${pathOf(scope)}/stream`, {
    authorization: `Bearer ${key}`,
    ...(after === undefined ? {} : { "last-event-id": after }),
  });
  opened.push(stream);
  return stream;
}

/** Opens a stream and waits for its first heartbeat: from then on, it sends every change. */
async function openAndCatchUp(...asked: Parameters<typeof open>): Promise<EventStream> {
  const stream = await open(...asked);
  await eventually(() => stream.events.some(({ event }) => event === "heartbeat"));
  return stream;
}

async function openStreams(): Promise<number | undefined> {
  const gauge = management.metrics.getSingleMetric("halyard_change_streams_open");
  return (await gauge?.get())?.values[0]?.value;
}

const changesIn = ({ events }: EventStream) =>
  events.filter(({ event }) => event === "change").map(({ data }) => data as Change);

const flagEvents = ({ events }: EventStream) => events.filter(({ event }) => event !== "heartbeat");

const heartbeatsIn = ({ events }: EventStream) =>
  events.filter(({ event }) => event === "heartbeat").length;

const received = (stream: EventStream, count: number) =>
  eventually(() => changesIn(stream).length >= count, { because: `${count} changes are received` });

async function listed(scope: Scope, key = scope.serverKey): Promise<Change[]> {
  return (await management.call(`${pathOf(scope)}?limit=1000`, { key })).body.changes;
}

async function send(scope: Scope, method: string, path: string, body?: unknown) {
  const answer = await management.call(path, { method, key: scope.serverKey, body });
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

let counter = 0;
const createFlag = (scope: Scope) =>
  send(scope, "POST", "/api/v1/flags", { key: `flag-${++counter}`, name: "A flag" });

/** Returns an audit entry of an environment. */
const renameIn = ({ project, first, userId }: Scope): AuditEntry => ({
  id: uuidv7(),
  projectId: project.id,
  environmentId: first.id,
  action: "environment_renamed",
  cause: "manual",
  actor: { id: userId, email: "late@example.com" },
  apiKeyId: null,
  via: "operator",
  before: { name: "before" },
  after: { name: "after" },
  changedAt: new Date(),
});

/** Inserts entries of an environment into the audit log, as a transaction of management does. */
const insertEntries = (sql: postgres.Sql, scope: Scope, count = 1, nameLength = 1) => sql`
  insert into changes (id, project_id, environment_id, action, cause, actor_id, actor_email,
    changed_at, state_after)
  select gen_random_uuid(), ${scope.project.id}, ${scope.first.id}, 'environment_renamed', 'manual',
    gen_random_uuid(), 'late@example.com', now(),
    jsonb_build_object('name', repeat('x', ${nameLength}))
  from generate_series(1, ${count})`;

/** Number of entries of 200 kB that is more than the buffers of a connection hold. */
const moreThanBuffers = 100;

describe("a stream of changes", () => {
  it("sends each change with its author, exactly as the list returns it", async () => {
    const scope = await given.scope();
    const stream = await openAndCatchUp(scope);
    const flag = await createFlag(scope);
    await send(scope, "PATCH", `/api/v1/flags/${flag.id}`, { enabled: true });
    await management.call(`/api/v1/organizations/${scope.organizationId}/users`, {
      ...{ method: "POST", key: operatorToken, body: { email: "grace@example.com" } },
    });
    await received(stream, 3);
    expect(changesIn(stream)).toEqual((await listed(scope)).slice(0, 3).reverse());
    expect(changesIn(stream).map(({ action }) => action)).toEqual([
      "created",
      "state",
      "user_created",
    ]);
    const [user] = await management.sql`select email from users where id = ${scope.userId}`;
    expect(changesIn(stream)[0]?.actor.email).toBe(user?.email);
    for (const { event, id, data } of stream.events)
      if (event === "change") expect(id).toBe((data as Change).id);
  });

  it("has the headers of a stream, and begins with the id of the newest entry", async () => {
    const scope = await given.scope();
    const stream = await openAndCatchUp(scope);
    expect(stream.headers).toMatchObject({
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
      "x-content-type-options": "nosniff",
    });
    const [newest] = await listed(scope);
    expect(stream.events).toEqual([
      { event: "heartbeat", id: newest?.id, data: { timestamp: expect.any(Number) } },
    ]);
  });

  it("sends a client that reconnects what it missed, each change once and in order", async () => {
    const scope = await given.scope();
    const first = await openAndCatchUp(scope);
    await createFlag(scope);
    await received(first, 1);
    first.close();
    for (let missed = 0; missed < 3; missed += 1) await createFlag(scope);
    await insertEntries(admin, scope, 250);
    const second = await openAndCatchUp(scope, { after: changesIn(first)[0]?.id });
    expect(changesIn(second)).toEqual((await listed(scope)).slice(0, 253).reverse());
    expect(second.events.at(-1)?.event).toBe("heartbeat");
  });

  it("sends what a client missed that had received only a heartbeat", async () => {
    const scope = await given.scope();
    const first = await openAndCatchUp(scope);
    first.close();
    await createFlag(scope);
    const second = await openAndCatchUp(scope, { after: first.events[0]?.id });
    expect(changesIn(second).map(({ action }) => action)).toEqual(["created"]);
  });

  it("sends a reset for an unknown id, and when more than 1,000 changes were missed", async () => {
    const scope = await given.scope();
    const [newest] = await listed(scope);
    await insertEntries(admin, scope, 1_001);
    for (const [after, reason] of [
      ["nonsense", "unknown_id"],
      [randomUUID(), "unknown_id"],
      [newest?.id, "too_many_changes"],
    ]) {
      const stream = await openAndCatchUp(scope, { after });
      expect(stream.events.map(({ event }) => event)).toEqual(["reset", "heartbeat"]);
      expect(stream.events[0]?.data).toEqual({ reason });
    }
  });

  it("sends entries in the order of their commits, like the list", async () => {
    const scope = await given.scope();
    const stream = await openAndCatchUp(scope);
    const isDone = Promise.withResolvers<void>();
    const mayCommit = Promise.withResolvers<void>();
    const late = management.writer(async (write) => {
      recordAudit(write, [renameIn(scope)]);
      isDone.resolve();
      await mayCommit.promise;
      return {};
    });
    await isDone.promise;
    await createFlag(scope);
    await received(stream, 1);
    mayCommit.resolve();
    await late;
    await received(stream, 2);
    const actions = changesIn(stream).map(({ action }) => action);
    expect(actions).toEqual(["created", "environment_renamed"]);
    expect((await listed(scope)).slice(0, 2)).toEqual(changesIn(stream).toReversed());
  });

  it("sends no entry before an earlier one of the organization is committed", async () => {
    const scope = await given.scope();
    const stream = await openAndCatchUp(scope);
    const isHeld = Promise.withResolvers<void>();
    const isFree = Promise.withResolvers<void>();
    const holding = admin.begin(async (tx) => {
      await tx`select pg_advisory_xact_lock(42)`;
      isHeld.resolve();
      await isFree.promise;
    });
    await isHeld.promise;
    const waiting = (count: number) =>
      eventually(async () => {
        const locks = await admin`
          select from pg_locks
          where locktype = 'advisory' and not granted
            and database = (select oid from pg_database where datname = current_database())`;
        return locks.length === count;
      });
    // Has its sequence, and waits immediately before the commit.
    const first = management.writer(async (write) => {
      recordAudit(write, [renameIn(scope)]);
      write.beforeCommit(() => write.tx`select pg_advisory_xact_lock(42)`);
      return {};
    });
    await waiting(1);
    const second = createFlag(scope);
    await waiting(2);
    // Another organization does not wait.
    await createFlag(await given.scope());
    isFree.resolve();
    await Promise.all([holding, first, second]);
    await received(stream, 2);
    const actions = changesIn(stream).map(({ action }) => action);
    expect(actions).toEqual(["environment_renamed", "created"]);
  });

  describe("of an environment_only key", () => {
    async function openBound() {
      const scope = await given.scope();
      const { key } = await given.key(scope.second, {
        ...{ user_id: scope.userId, environment_only: true },
      });
      return { scope, key, stream: await openAndCatchUp(scope, { key }) };
    }

    it("sends the changes that the key can list, and no state of another environment", async () => {
      const { scope, key, stream } = await openBound();
      const flag = await createFlag(scope);
      await send(scope, "PATCH", `/api/v1/flags/${flag.id}`, { enabled: true });
      await send(scope, "PATCH", `/api/v1/flags/${flag.id}/environments/${scope.second.id}`, {
        enabled: true,
      });
      await send(scope, "DELETE", `/api/v1/flags/${flag.id}`);
      await eventually(() => flagEvents(stream).length >= 3);
      expect(flagEvents(stream).map(({ event }) => event)).toEqual([
        ...["flag_changed", "change", "flag_changed"],
      ]);
      expect(changesIn(stream)).toEqual((await listed(scope, key)).slice(0, 1));
      expect(changesIn(stream)).toMatchObject([{ action: "state" }]);
    });

    it("names flags that are created, renamed or deleted elsewhere, and nothing else about it", async () => {
      const { scope, key, stream } = await openBound();
      const flag = await createFlag(scope);
      await send(scope, "PATCH", `/api/v1/flags/${flag.id}`, { name: "Renamed", enabled: true });
      await send(scope, "DELETE", `/api/v1/flags/${flag.id}`);
      const flagChanged = { flag_id: flag.id, flag_key: flag.key };
      await eventually(() => flagEvents(stream).length >= 3);
      expect(flagEvents(stream).map(({ event, data }) => [event, data])).toEqual([
        ["flag_changed", flagChanged],
        ["flag_changed", flagChanged],
        ["flag_changed", flagChanged],
      ]);
      const resumed = await openAndCatchUp(scope, { key, after: flagEvents(stream)[0]?.id });
      expect(flagEvents(resumed)).toEqual(flagEvents(stream).slice(1));
    });
  });
});

describe("a stream of changes ends", () => {
  let laterMs = 0;
  beforeAll(() => {
    management.clock.monotonicMs = () => performance.now() + laterMs;
  });

  it("when its key is revoked", async () => {
    const scope = await given.scope();
    const { id, key } = await given.key(scope.first, { user_id: scope.userId });
    const [stream, other] = [await openAndCatchUp(scope, { key }), await openAndCatchUp(scope)];
    const environment = `/api/v1/projects/${scope.project.id}/environments/${scope.first.id}`;
    await send(scope, "DELETE", `${environment}/keys/${id}`);
    await stream.ended;
    await received(other, 1);
    expect(changesIn(other)).toMatchObject([{ action: "key_revoked" }]);
    expect(changesIn(stream)).toEqual([]);
  });

  it("when its key expires", async () => {
    const scope = await given.scope();
    const expiresAt = new Date(Date.now() + 60_000);
    const { key } = await given.key(scope.first, {
      ...{ user_id: scope.userId, expires_at: expiresAt.toISOString() },
    });
    const stream = await openAndCatchUp(scope, { key });
    management.clock.now = () => expiresAt;
    await stream.ended;
    management.clock.now = () => new Date();
  });

  it("when its client reads nothing for 30 s", async () => {
    const scope = await given.scope();
    await eventually(async () => (await openStreams()) === 0);
    const reading = await openAndCatchUp(scope);
    const silent = await openAndCatchUp(scope);
    silent.pause();
    await insertEntries(admin, scope, moreThanBuffers, 200_000);
    await received(reading, moreThanBuffers);
    // A stream is sent another change only after its client has read the others.
    await createFlag(scope);
    await received(reading, moreThanBuffers + 1);
    await eventually(async () => {
      // The system can still take a part of the unsent bytes, and then the client is behind since a later time.
      laterMs += 31_000;
      return (await openStreams()) === 1;
    });
    await createFlag(scope);
    await received(reading, moreThanBuffers + 2);
  });

  it("when its project is deleted, for the operator after the last change", async () => {
    const scope = await given.scope();
    const ofKey = await openAndCatchUp(scope);
    const ofOperator = await openAndCatchUp(scope, { key: operatorToken });
    const id = scope.project.id;
    const path = `/api/v1/organizations/${scope.organizationId}/projects/${id}?confirm=${id}`;
    await management.call(path, { method: "DELETE", key: operatorToken });
    await Promise.all([ofKey.ended, ofOperator.ended]);
    expect(changesIn(ofOperator)).toMatchObject([{ action: "project_deleted" }]);
    const again = await open(scope, { key: operatorToken });
    expect(again.status).toBe(404);
  });
});

describe("opening a stream of changes", () => {
  it("is limited to the operator and the project's server keys", async () => {
    const [scope, stranger] = [await given.scope(), await given.scope()];
    const client = await given.key(scope.first, { kind: "client", user_id: scope.userId });
    const statusOf = async (key: string) => (await open(scope, { key })).status;
    expect(await statusOf(stranger.serverKey)).toBe(404);
    expect(await statusOf(client.key)).toBe(403);
    expect(await statusOf("hs_no_key")).toBe(401);
    const head = await management.call(`${pathOf(scope)}/stream`, {
      ...{ method: "HEAD", key: scope.serverKey },
    });
    expect(head.status).toBe(404);
  });

  it("is limited to 100 streams of an organization, with any of its keys", async () => {
    const [scope, stranger] = [await given.scope(), await given.scope()];
    const { key } = await given.key(scope.second, { user_id: scope.userId });
    await Promise.all(Array.from({ length: 60 }, () => openAndCatchUp(scope)));
    await Promise.all(Array.from({ length: 40 }, () => openAndCatchUp(scope, { key })));
    expect(await openStreams()).toBe(100);
    const beyond = await open(scope, { key });
    await beyond.ended;
    expect([beyond.status, JSON.parse(beyond.rest()).error.code]).toEqual([429, "RATE_001"]);
    expect((await open(scope, { key: operatorToken })).status).toBe(200);
    expect((await open(stranger)).status).toBe(200);
  });

  it("is limited to 100 streams of an organization that opens them simultaneously", async () => {
    const { sql } = management;
    const clock = { now: () => new Date(), monotonicMs: () => performance.now() };
    const logger = pino({ level: "silent" });
    const streams = createChangeStreams({ sql, ...clock, metrics: new Registry(), logger });
    const feed = { organizationId: uuidv7(), projectId: uuidv7(), environmentId: undefined };
    const opening = {
      ...{ feed, caller: uuidv7(), isOfSession: false, expiresAtMs: undefined, resume: undefined },
      mayContinue: async () => true,
    };
    const responses = Array.from(
      { length: 101 },
      () => new ServerResponse(new IncomingMessage(new Socket())),
    );
    for (const _ of responses) expect(streams.checkRoom(opening)).toBeUndefined();
    for (const response of responses) streams.open(response, opening);
    expect(responses.map(({ writableEnded }) => writableEnded).indexOf(true)).toBe(100);
    await streams.stop();
  });
});

describe("given two processes of management", () => {
  let other: Management;
  beforeAll(async () => {
    other = await openManagement({ over: management.backends, losesHints: true });
  });
  afterAll(() => other.stop());

  it("sends changes that another process made, even if all hints are lost", async () => {
    const scope = await given.scope();
    const stream = await openAndCatchUp(scope, { at: other.url });
    await createFlag(scope);
    await received(stream, 1);
    expect(changesIn(stream)).toEqual((await listed(scope)).slice(0, 1));
  });

  it("ends the streams of a process that stops, and another one resumes them", async () => {
    const scope = await given.scope();
    const leaving = await openManagement({ over: management.backends });
    const first = await openAndCatchUp(scope, { at: leaving.url });
    await createFlag(scope);
    await received(first, 1);
    await leaving.stop();
    await first.ended;
    await createFlag(scope);
    const second = await openAndCatchUp(scope, { after: changesIn(first)[0]?.id });
    expect(changesIn(second)).toEqual((await listed(scope)).slice(0, 1));
  });
});

describe("given a restart of PostgreSQL", () => {
  let server: RestartablePostgres;
  let restarted: Management;
  let scope: Scope;
  beforeAll(async () => {
    server = await startRestartablePostgres();
    // Two databases must not publish to one server, and the server of `management` is still in use.
    const nats = await startRestartableNats(await natsServerBinary());
    restarted = await openManagement({
      over: { database: { ...server, drop: server.stop }, nats },
    });
    scope = await tenancyOf(restarted).scope();
  });
  afterAll(() => restarted?.close());

  it("keeps the stream open, and sends the changes of afterwards", async () => {
    const stream = await openAndCatchUp(scope, { at: restarted.url });
    await server.kill();
    await server.start();
    await eventually(async () => {
      const body = { key: `flag-${++counter}`, name: "A flag" };
      const options = { method: "POST", key: scope.serverKey, body };
      return (await restarted.call("/api/v1/flags", options)).status === 201;
    });
    await received(stream, 1);
    expect(changesIn(stream)).toMatchObject([{ action: "created" }]);
  });

  it("does not end the stream of a client that was behind and has read everything", async () => {
    let nowMs = 0;
    restarted.clock.monotonicMs = () => nowMs;
    const stream = await openAndCatchUp(scope, { at: restarted.url });
    const reading = await openAndCatchUp(scope, { at: restarted.url });
    stream.pause();
    const sql = postgres(restarted.backends.database.adminUrl, {
      ...{ max: 1, connection: { search_path: "management" } },
    });
    await insertEntries(sql, scope, moreThanBuffers, 200_000);
    await sql.end();
    await received(reading, moreThanBuffers);
    await server.kill();
    stream.resume();
    /** Waits for the next heartbeat, which is sent only to a client that has read everything. */
    const heartbeat = (afterMs: number) => {
      const before = heartbeatsIn(stream);
      nowMs += afterMs;
      return Promise.race([
        eventually(() => heartbeatsIn(stream) > before),
        stream.ended.then(() => "ended"),
      ]);
    };
    await heartbeat(15_000);
    expect(await heartbeat(31_000)).toBe(true);
    await server.start();
    await received(stream, moreThanBuffers);
  });
});

describe("given a gateway", () => {
  let gateway: ServiceProcess;
  beforeAll(async () => {
    const upstream = management.url;
    gateway = await startServiceProcess("gateway", {
      UPSTREAM_MANAGEMENT_URL: upstream,
      UPSTREAM_SCHEDULER_URL: upstream,
      UPSTREAM_SDK_EDGE_URL: upstream,
      UPSTREAM_USAGE_METERING_URL: upstream,
      UPSTREAM_WEBHOOK_DISPATCHER_URL: upstream,
      UPSTREAM_DASHBOARD_URL: upstream,
    });
  });
  afterAll(() => gateway?.stop());

  it("forwards changes without buffering, and ends the stream when the gateway stops", async () => {
    const scope = await given.scope();
    const stream = await openAndCatchUp(scope, { at: gateway.url });
    await openAndCatchUp(scope, { at: gateway.url });
    await createFlag(scope);
    await received(stream, 1);
    await gateway.stop();
    await stream.ended;
  });
});
