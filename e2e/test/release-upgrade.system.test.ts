import { execFile } from "node:child_process";
import { createHmac } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import {
  call,
  eventually,
  openEventStream,
  type Receiver,
  startReceiver,
  startServiceProcess,
} from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import postgres from "postgres";
import { allowedContractions } from "../src/checks/release/allowed-contractions.ts";
import { type DatabaseSchema, readDatabaseSchema } from "../src/checks/release/database-schema.ts";
import { findContractions } from "../src/checks/release/find-contractions.ts";
import { readStored, type StoredMessage } from "../src/checks/release/read-stored.ts";
import { send } from "../src/checks/release/record-exchanges.ts";
import {
  databaseName,
  fixtureFiles,
  fixtureFolder,
  homeFiles,
  isOfRollingRelease,
  type ReleaseFixture,
  readFixtureJson,
  releasesWithFixture,
  restoreHome,
} from "../src/checks/release/release-fixture.ts";
import { type Demo, type Launched, launch } from "../src/system/launched.ts";
import { must } from "../src/system/tenancy.ts";

/**
 * Starts this commit on the data of each release; for 0.1, `docs/upgrading.md` describes this upgrade. The fixtures
 * never change, and the test may run at any later date. So it reads nothing that depends on the date:
 *
 * - Finished deliveries are deleted, and unfinished ones fail, after WEBHOOK_DELIVERY_RETENTION_DAYS, which is set to
 *   27 years. The retrying delivery is due in a century.
 * - `GET /api/v1/usage` shows only the current month, and hourly request counts are merged into days after 40 days.
 *   So the test adds up the tables.
 * - Hourly evaluations and bulk responses are deleted after 31 days, and the edges' sequences after 40 days. The test
 *   reads neither.
 * - Schedules are deleted after 90 days unless they are the latest of their flag and environment. The fixture
 *   replaces none.
 * - Events leave FLAG_EVENTS, and tombstones the snapshot, after seven days. Sent rows leave the outbox. The test
 *   compares responses of services, which contain none of them.
 * - Pending schedules and the key with an expiry are valid until 2099.
 */
const variables = { WEBHOOK_DELIVERY_RETENTION_DAYS: "9999" };

const verifyHistory = fileURLToPath(
  new URL("../../services/management/src/verify-history.ts", import.meta.url),
);

it("has a fixture for every release before the current version", () => {
  const folder = new URL("../../libs/contracts/released/", import.meta.url);
  const { version } = JSON.parse(
    readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
  );
  const earlier = readdirSync(folder).filter((name) => /^\d/.test(name) && name !== version);
  expect(releasesWithFixture()).toEqual(expect.arrayContaining(earlier));
});

describe.each(releasesWithFixture())("given the data of release %s", (version) => {
  const folder = fixtureFolder(version);
  const isRolling = isOfRollingRelease(folder);
  let fixture: ReleaseFixture;
  let releasedSchema: DatabaseSchema;
  let launched: Launched;
  let sql: postgres.Sql;
  let databaseUrl: string;
  let receiver: Receiver;
  let url: string;

  beforeAll(async () => {
    fixture = await readFixtureJson<ReleaseFixture>(folder, "expected");
    receiver = await startReceiver();
    launched = await launch(variables, {
      prepare: (home) =>
        restoreHome(folder, home, async (restored) => {
          if (isRolling) releasedSchema = await readDatabaseSchema(restored);
        }),
    });
    url = launched.demo.base_url;
    const password = readFileSync(join(launched.home, homeFiles.superuserPassword), "utf8").trim();
    const address = launched.backendAddress("PostgreSQL");
    databaseUrl = `postgres://postgres:${password}@${address}/${databaseName}`;
    sql = postgres(databaseUrl, { max: 1 });
  });
  afterAll(async () => {
    await sql?.end();
    await launched?.remove();
    await receiver?.close();
  });

  it("keeps the demo project with its keys", async () => {
    const { base_url: _address, ...demo } = await readFixtureJson<Demo>(folder, "demo");
    expect(launched.demo).toMatchObject(demo);
  });

  it("keeps the usage", async () => {
    const { organization_id: id, requests } = fixture.usage;
    const counted = await sql`
      select sum(requests)::integer as requests from usage.organization_months
      where organization_id = ${id}
      union all
      select sum(requests)::integer from (
        select organization_id, requests from usage.request_hours
        union all
        select organization_id, requests from usage.request_days
      ) as counted
      where organization_id = ${id}`;
    expect(counted.map((row) => row.requests)).toEqual([requests, requests]);
  });

  it("counts the size of the release's rules, in management and in usage-metering", async () => {
    const path = `${url}/api/v1/organizations/${fixture.usage.organization_id}`;
    const { configuration_bytes: size } = await must(path, { key: launched.demo.operator_token });
    expect(size.used).toBeGreaterThan(0);
    await eventually(async () => {
      const usage = await must(`${url}/api/v1/usage`, { key: launched.demo.server_key });
      return usage.configuration_bytes.used === size.used;
    });
  });

  it("returns the same responses as the release", async () => {
    expect(fixture.exchanges.length).toBeGreaterThan(0);
    for (const exchange of fixture.exchanges) {
      const current = await send(url, fixture.keys, exchange);
      const [expected, answer] = isRolling
        ? [exchange.answer, current]
        : [withNewestKeyFirst(exchange.answer), withoutReaderKeys(current)];
      expect({ ...exchange, answer }).toMatchObject({
        ...exchange,
        answer: withAnyLastUse(expected),
      });
    }
  });

  it.each(["revoked", "rotatedOut"])("rejects the key that was %s", async (name) => {
    const { status } = await call(`${url}/api/v1/sdk/flags`, { key: fixture.keys[name] ?? "" });
    expect(status).toBe(401);
  });

  it("delivers the release's failed delivery, signed with the stored secret", async () => {
    const { path, secret, retryingDelivery } = fixture.webhooks.chat;
    const key = launched.demo.server_key;
    await must(`${url}${path}`, {
      method: "PATCH",
      key,
      body: { url: `${receiver.url}/released` },
    });
    const delivery = `${url}${path}/deliveries/${retryingDelivery}`;
    await must(`${delivery}/redeliver`, { method: "POST", key });
    const request = await eventually(() =>
      receiver.requests.find(({ headers }) => headers["x-service-delivery"] === retryingDelivery),
    );
    const signature = createHmac("sha256", secret).update(request.raw).digest("hex");
    expect(request.headers["x-service-signature"]).toBe(`sha256=${signature}`);
    await eventually(async () => (await must(delivery, { key })).status === "delivered");
  });

  it("sends a change of a stored flag to a stream and to a stored webhook", async () => {
    const key = launched.demo.server_key;
    await must(`${url}${fixture.webhooks.deployments.path}`, {
      method: "PATCH",
      key,
      body: { url: `${receiver.url}/new` },
    });
    const stream = await openEventStream(`${url}/api/v1/sdk/stream`, {
      authorization: `Bearer ${fixture.keys.web}`,
    });
    const { flags } = await must(`${url}/api/v1/flags`, { key });
    const flag = flags.find((found: { key: string }) => found.key === "dark-mode");
    await must(`${url}/api/v1/flags/${flag.id}`, {
      method: "PATCH",
      key,
      body: { enabled: true },
    });
    const isOn = (data: unknown) =>
      (data as { flags?: Record<string, boolean> }).flags?.["dark-mode"] === true;
    await eventually(() => stream.events.some(({ data }) => isOn(data)));
    stream.close();
    await eventually(() => receiver.requests.some((request) => request.path === "/new"));
  });

  it("has a history that verifies, with the changes of both releases", async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [verifyHistory], {
      env: { ...process.env, POSTGRES_URL: databaseUrl },
    });
    expect(stdout).toContain("The history is intact");
  });

  // Processes of 0.1 do not run beside later ones.
  if (!isRolling) {
    it.each([
      ["management_runtime", "runtime_password", "management.flags"],
      ["scheduler_runtime", "scheduler_runtime_password", "scheduler.schedules"],
      ["webhooks_runtime", "webhooks_runtime_password", "webhooks.webhooks"],
      ["usage_runtime", "usage_runtime_password", "usage.request_hours"],
    ])("withdraws the rights of its role %s", async (role, password, table) => {
      const credentials = await readFixtureJson<Record<string, string>>(folder, "credentials");
      const login = new URL(databaseUrl);
      login.username = role;
      login.password = `${credentials[password]}`;
      const former = postgres(login.href, { max: 1 });
      try {
        expect(await former`select 1 as alive`).toEqual([{ alive: 1 }]);
        await expect(former`delete from ${former(table)}`).rejects.toThrow("permission denied");
      } finally {
        await former.end();
      }
    });
    return;
  }

  it("had messages that every reader of this commit accepts", async () => {
    const streams = await readFixtureJson<Record<string, StoredMessage[]>>(folder, "messages");
    for (const [stream, messages] of Object.entries(streams)) {
      expect(messages.length).toBeGreaterThan(0);
      for (const message of messages)
        expect({ ...message, ...readStored(stream, message) }).toMatchObject({ ok: true });
    }
  });

  it("has only expanded the database", async () => {
    const contractions = findContractions(releasedSchema, await readDatabaseSchema(sql));
    const allowed = allowedContractions.map(({ contraction }) => contraction);
    expect(contractions.filter((found) => !allowed.includes(found))).toEqual([]);
  });

  it("serves the flags from the edge's cache while NATS is unreachable", async () => {
    const directory = await mkdtemp(join(tmpdir(), "halyard-edge-"));
    const cache = join(directory, "snapshot-cache");
    await copyFile(join(folder, fixtureFiles.cache), cache);
    const edge = await startServiceProcess("sdk-edge", {
      NATS_URL: "nats://127.0.0.1:1",
      SNAPSHOT_CACHE_FILE: cache,
      SIGNING_PUBLIC_KEYS: "",
    });
    try {
      const ofSdk = fixture.exchanges.filter(({ path }) => path.startsWith("/api/v1/sdk/"));
      expect(ofSdk.length).toBeGreaterThan(0);
      await eventually(async () => (await call(`${edge.metricsUrl}/readyz`)).status === 200);
      for (const exchange of ofSdk)
        expect(await send(edge.url, fixture.keys, exchange)).toMatchObject(
          exchange.answer as Record<string, unknown>,
        );
    } finally {
      await edge.stop();
      await rm(directory, { recursive: true });
    }
  });
});

/** Release 0.1 listed the oldest key first. */
function withNewestKeyFirst(answer: unknown): unknown {
  const { keys } = answer as { keys?: unknown[] };
  return keys === undefined ? answer : { ...(answer as object), keys: keys.toReversed() };
}

/** Leaves out the reader key that a start adds to the demo project; release 0.1 has no such kind. */
function withoutReaderKeys(answer: unknown): unknown {
  type Keys = { kind?: string; after?: { kind?: string } | null }[];
  const { keys, changes } = answer as { keys?: Keys; changes?: Keys };
  const recorded = (list: Keys) =>
    list.filter(({ kind, after }) => kind !== "reader" && after?.kind !== "reader");
  return {
    ...(answer as object),
    ...(keys && { keys: recorded(keys) }),
    ...(changes && { changes: recorded(changes) }),
  };
}

/** Accepts any last use of keys, because these requests use keys too. */
function withAnyLastUse(answer: unknown): unknown {
  const { keys } = answer as { keys?: object[] };
  if (keys === undefined) return answer;
  const others = keys.map((key) => {
    const { last_used_at: _, ...rest } = key as { last_used_at?: unknown };
    return rest;
  });
  return { ...(answer as object), keys: others };
}
