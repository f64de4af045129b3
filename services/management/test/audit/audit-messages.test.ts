import { type AuditRecorded, auditStream, deadLetterStream } from "@halyard/contracts";
import { publishSigned } from "@halyard/jetstream";
import {
  call,
  connectAsSuperuser,
  eventually,
  openEventStream,
  type ServiceProcess,
  startServiceProcess,
  testMessageSigner,
} from "@halyard/testing";
import { afterAll, beforeEach, describe, expect, it } from "@jest/globals";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { v7 as uuidv7 } from "uuid";
import {
  type Management,
  openManagement,
  operatorToken,
  seedProject,
} from "../management-fixture.ts";

/** Tests the path of changes of webhooks and schedules from the queue into the audit log. */
let management: Management;
let project: Awaited<ReturnType<typeof seedProject>>;

management = await openManagement();
const connection = await connect({ servers: management.natsUrl });
const manager = await jetstreamManager(connection);
const admin = connectAsSuperuser(management.adminUrl, "management");
afterAll(async () => {
  await admin.end();
  await connection.close();
  await management?.close();
});
beforeEach(async () => {
  project = await seedProject(management);
});

const webhook = { name: "Chat", url: "https://example.com/***", events: ["flag.toggled"] };

function aMessage(fields: Partial<AuditRecorded> = {}): AuditRecorded {
  return {
    id: uuidv7(),
    organization_id: project.organizationId,
    project_id: project.projectId,
    action: "webhook_created",
    service: "webhook-dispatcher",
    user_id: project.userId,
    api_key_id: project.serverKey.slice(3, 19),
    webhook_id: uuidv7(),
    flag_id: null,
    environment_id: null,
    before: null,
    after: webhook,
    changed_at: "2026-01-02T03:04:05.678Z",
    ...fields,
  };
}

/**
 * Publishes a message with the signature of its service. It has no message id, so that the broker does not drop
 * repetitions.
 */
const send = (message: unknown) => {
  const isSchedulers = (message as AuditRecorded).service === "scheduler";
  const writer = isSchedulers ? "scheduler" : "webhook-dispatcher";
  const payload = JSON.stringify(message);
  const { subject } = auditStream.recorded;
  return publishSigned(jetstream(connection), testMessageSigner(writer), { subject, payload });
};

const untilTaken = () =>
  eventually(async () => (await manager.streams.info(auditStream.name)).state.messages === 0, {
    because: "the queue is empty",
  });

const deadLetters = async () => (await manager.streams.info(deadLetterStream.name)).state.messages;

async function changesOf(key = project.serverKey, query = "") {
  const path = `/api/v1/projects/${project.projectId}/changes${query}`;
  const answer = await management.call(path, { key });
  expect(answer.status).toBe(200);
  return answer.body.changes;
}

describe("a change of a webhook", () => {
  it("is in the project's audit log with the user's address and the API key", async () => {
    const message = aMessage();
    await send(message);
    await untilTaken();
    expect(await changesOf()).toEqual([
      {
        id: message.id,
        action: "webhook_created",
        change_type: "manual",
        flag_id: null,
        flag_key: null,
        key_id: null,
        webhook_id: message.webhook_id,
        user_id: null,
        environment_id: null,
        actor: { id: project.userId, email: "ada@example.com", via: "key" },
        api_key_id: project.serverKey.slice(3, 19),
        before: null,
        after: webhook,
        changed_at: message.changed_at,
      },
    ]);
    expect(await changesOf(project.environmentOnlyKey)).toEqual([]);
  });

  it("is sent to the open streams of the project's changes", async () => {
    const url = `${management.url}/api/v1/projects/${project.projectId}/changes/stream`;
    const stream = await openEventStream(url, { authorization: `Bearer ${project.serverKey}` });
    await eventually(() => stream.events.length > 0);
    const message = aMessage();
    await send(message);
    const [, sent] = await eventually(() => stream.events.length > 1 && stream.events);
    expect(sent).toMatchObject({ event: "change", id: message.id });
    expect(sent?.data).toEqual((await changesOf())[0]);
    stream.close();
  });

  it("has the sign-in of a session in place of a key", async () => {
    await send(aMessage({ api_key_id: null, via: "passkey" }));
    await untilTaken();
    expect(await changesOf()).toMatchObject([
      { actor: { id: project.userId, via: "passkey" }, api_key_id: null },
    ]);
  });

  it("has the service as actor if no user requested it", async () => {
    await send(aMessage({ action: "webhook_changed", user_id: null, api_key_id: null }));
    await untilTaken();
    expect(await changesOf()).toMatchObject([
      {
        actor: { id: "00000000-0000-0000-0000-000000000000", email: "webhook-dispatcher" },
        api_key_id: null,
      },
    ]);
  });
});

describe("a change of a schedule", () => {
  it("is among its flag's entries, which keys of the environment can read", async () => {
    const created = await management.call("/api/v1/flags", {
      method: "POST",
      key: project.serverKey,
      body: { key: "scheduled", name: "A flag" },
    });
    const flagId = created.body.id;
    const of = { webhook_id: null, flag_id: flagId, environment_id: project.environmentId };
    const service = "scheduler";
    await send(aMessage({ ...of, service, action: "schedule_set" }));
    await management.call(`/api/v1/flags/${flagId}`, { method: "DELETE", key: project.serverKey });
    await send(aMessage({ ...of, service, action: "schedule_cleared" }));
    await untilTaken();
    const seen = await changesOf(project.serverKey, `?flag_id=${flagId}`);
    const scheduled = seen.filter(({ action }: { action: string }) => /^schedule/.test(action));
    expect(scheduled).toMatchObject([
      { action: "schedule_cleared", flag_key: "scheduled" },
      { action: "schedule_set", flag_key: "scheduled" },
    ]);
    const environmentOnly = await changesOf(project.environmentOnlyKey, `?flag_id=${flagId}`);
    expect(
      environmentOnly.filter(({ action }: { action: string }) => /^sched/.test(action)),
    ).toEqual(scheduled);
  });
});

describe("given a repeated message", () => {
  it("inserts one entry", async () => {
    const message = aMessage();
    for (let time = 0; time < 3; time += 1) await send(message);
    await untilTaken();
    expect(await changesOf()).toHaveLength(1);
    expect(await deadLetters()).toBe(0);
  });
});

describe("given a process that is killed after the insert and before the acknowledgement", () => {
  it("inserts one entry", async () => {
    await management.stop();
    const environment = {
      POSTGRES_URL: management.backends.database.runtimeUrls.management,
      NATS_URL: management.natsUrl,
      OPERATOR_TOKEN: operatorToken,
    };
    let process: ServiceProcess | undefined;
    try {
      process = await startServiceProcess("management", environment);
      // The commit waits at the trigger. PostgreSQL notices the killed process only after the commit.
      await admin.unsafe(`
        create function wait_for_test() returns trigger language plpgsql
          as $$ begin perform pg_advisory_xact_lock_shared(1); return new; end $$;
        grant execute on function wait_for_test to management_service;
        create constraint trigger wait_for_test after insert on changes
          deferrable initially deferred for each row execute function wait_for_test()`);
      const holder = await admin.reserve();
      await holder`select pg_advisory_lock(1)`;
      const message = aMessage();
      await send(message);
      await eventually(async () => (await waiting()) === 1, { because: "the commit waits" });
      await process.kill();
      await holder`select pg_advisory_unlock(1)`;
      holder.release();
      const count = async () => (await admin`select from changes where id = ${message.id}`).length;
      await eventually(async () => (await count()) === 1, { because: "the insert is committed" });
      expect((await manager.streams.info(auditStream.name)).state.messages).toBe(1);
      process = await startServiceProcess("management", environment);
      await untilTaken();
      expect(await count()).toBe(1);
      expect(await deadLetters()).toBe(0);
      const changes = `${process.url}/api/v1/projects/${project.projectId}/changes`;
      expect((await call(changes, { key: operatorToken })).body.changes).toHaveLength(1);
    } finally {
      await process?.kill();
      management = await openManagement({ over: management.backends });
    }
  });

  const waiting = async () =>
    (
      await admin`
        select from pg_locks
        where locktype = 'advisory' and not granted
          and database = (select oid from pg_database where datname = current_database())`
    ).length;
});

describe("given an invalid message", () => {
  it.each([
    ["invalid JSON", () => "{", "(the whole document) must be object"],
    ["another action", () => ({ ...aMessage(), action: "state" }), "/action must be one of"],
    ["another project", () => aMessage({ project_id: uuidv7() }), "Unknown project."],
    [
      "a project of another organization",
      () => aMessage({ organization_id: uuidv7() }),
      "Unknown project.",
    ],
    ["a webhook without its id", () => aMessage({ webhook_id: null }), "subject of the change"],
    [
      "a schedule without a flag",
      () => aMessage({ service: "scheduler", action: "schedule_set" }),
      "subject of the change",
    ],
    ["a schedule by the dispatcher", () => aMessage({ action: "schedule_set" }), "another service"],
    ["a webhook by the scheduler", () => aMessage({ service: "scheduler" }), "another service"],
  ])("dead-letters it and continues: %s", async (_what, write, reason) => {
    await send(write());
    await send(aMessage());
    await untilTaken();
    expect(await changesOf()).toHaveLength(1);
    const stored = await manager.streams.getMessage(deadLetterStream.name, {
      last_by_subj: deadLetterStream.subjectPrefix + auditStream.recorded.subject,
    });
    expect(stored?.header.get("Halyard-Reason")).toContain(reason);
  });
});

describe("given a message without a signature", () => {
  it("dead-letters it and continues", async () => {
    const { subject } = auditStream.recorded;
    await jetstream(connection).publish(subject, JSON.stringify(aMessage()));
    const signed = aMessage();
    await send(signed);
    await untilTaken();
    expect(await changesOf()).toMatchObject([{ id: signed.id }]);
  });
});

describe("given a PostgreSQL that accepts no connections", () => {
  it("keeps the message until PostgreSQL is available", async () => {
    const [{ name }] = await admin<[{ name: string }]>`select current_database() as name`;
    const limit = (count: number) =>
      admin`alter database ${admin(name)} connection limit ${admin.unsafe(String(count))}`;
    await limit(0);
    try {
      await admin`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and usename = 'management_service'`;
      await send(aMessage());
      await eventually(async () => {
        const metric = management.metrics.getSingleMetric("halyard_queue_retries_total");
        const values = (await metric?.get())?.values ?? [];
        return values.some(
          ({ labels, value }) => labels.queue === auditStream.recorded.subject && value > 5,
        );
      });
    } finally {
      await limit(-1);
    }
    await untilTaken();
    expect(await changesOf()).toHaveLength(1);
  });
});
