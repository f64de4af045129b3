import { eventually } from "@halyard/testing";
import { afterEach, expect, it } from "@jest/globals";
import {
  awaitEdgesAgree,
  awaitSettled,
  awaitSnapshot,
  faultsOfSnapshot,
} from "../src/checks/agreement.ts";
import { faultSystem, resumedWithinMs, surviveFault } from "../src/stories/fault-story.ts";
import { recordFaults } from "../src/stories/reliability-page.ts";
import { type PostgresPair, startPostgresPair } from "../src/system/postgres-pair.ts";
import { type Management, type System, startSystem } from "../src/system/system.ts";
import { createTenant, must } from "../src/system/tenancy.ts";
import { type CreatedFlag, createFlags } from "../src/traffic/changes.ts";

/** PostgreSQL with a standby that is promoted after the loss of the primary. */
let postgres: PostgresPair;
let system: System;
afterEach(() => system?.close());

async function failOver(): Promise<void> {
  await postgres.kill();
  await postgres.promote();
}

it("loses and doubles nothing when a synchronous standby is promoted", async () => {
  postgres = await startPostgresPair({ synchronous: true });
  system = await startSystem({ ...faultSystem, postgres });
  const name = "the primary is killed, and the synchronous standby promoted";
  const result = await surviveFault(system, name, {
    fault: failOver,
    repair: async () => undefined,
  });
  const [server] = await system.sql<[{ version: string }]>`
    select current_setting('server_version') as version`;
  recordFaults("PostgreSQL", { version: server.version, results: [result] });
  expect(result).toMatchObject({ unanswered: [], faults: [] });
  expect(result.changesPausedMs).toBeLessThan(resumedWithinMs);
});

it("makes all edges agree with a promoted asynchronous standby that lacks the last change", async () => {
  postgres = await startPostgresPair({ synchronous: false });
  system = await startSystem({ managements: 2, edges: 2, postgres });
  const { sql, edges, nats } = system;
  const [management] = system.managements as [Management];
  const { environmentId, serverKey, clientKey } = await createTenant(management.url, {
    name: "Asynchronous standby",
  });
  const [lost] = (await createFlags(management.url, serverKey, ["lost"])) as [CreatedFlag];
  const switchOn = () =>
    must(`${management.url}/api/v1/flags/${lost.id}`, {
      method: "PATCH",
      key: serverKey,
      body: { enabled: true },
    });
  const agree = () => awaitEdgesAgree({ sql, edges, environmentId, key: clientKey });
  const isOn = async () => {
    const [row] = await sql<{ enabled: boolean }[]>`
      select (content ->> 'enabled')::boolean as enabled
      from flag_states where flag_id = ${lost.id} and environment_id = ${environmentId}`;
    return row?.enabled;
  };

  await agree();
  await postgres.awaitReceived();
  postgres.replication.shut();
  await switchOn();
  await agree();
  await failOver();
  expect(await eventually(isOn, { until: (value) => value !== undefined })).toBe(false);
  await agree();
  await awaitSettled(sql);
  await awaitSnapshot(nats.url);
  expect(await faultsOfSnapshot(sql, nats.url)).toEqual([]);
  await eventually(switchOn);
  await agree();
});
