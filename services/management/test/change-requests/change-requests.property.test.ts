import {
  call,
  isThorough,
  type ServiceProcess,
  seededRandom,
  startServiceProcess,
  testSeed,
} from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { readBase, readDifferences, readPlace } from "../../src/change-requests/base.ts";
import { differencesOf } from "../../src/change-requests/change-request.ts";
import { findRequest, readOpen } from "../../src/change-requests/request-store.ts";
import {
  type Management,
  openManagement,
  operatorToken,
  publicUrl,
} from "../management-fixture.ts";
import {
  type AppliedRequest,
  type AuditedEntry,
  createApprovalModel,
  type Witness,
} from "./approval-model.ts";
import { createSteps } from "./interleaved-steps.ts";
import { reviewsOf } from "./review-fixture.ts";

/**
 * An editor, two approvers and an admin at random, several at once, over two processes of management. This process signs
 * them in, and looks for due and stale requests too. A model replays the audit log after each batch. `npm run chaos` takes
 * 10,000 steps, and `TEST_SEED` repeats the choices.
 */
const stepCount = Number(process.env.TEST_STEPS ?? (isThorough ? 10_000 : 200));
const maxAtOnce = 5;

let one: Management;
let processes: ServiceProcess[] = [];
beforeAll(async () => {
  one = await openManagement();
  const { database, nats } = one.backends;
  const start = () =>
    startServiceProcess("management", {
      ...{ POSTGRES_URL: database.runtimeUrls.management, POSTGRES_MAX_CONNECTIONS: "10" },
      ...{ NATS_URL: nats.url, OPERATOR_TOKEN: operatorToken, PUBLIC_URL: publicUrl },
      ...{ KEY_REQUESTS_PER_SECOND: "100000", KEY_REQUESTS_BURST: "100000" },
    });
  processes = await Promise.all([start(), start()]);
});
afterAll(async () => {
  await Promise.all(processes.map((each) => each.kill()));
  await one?.close();
});

/** Creates an environment whose flags use an audience, and the steps against it. */
async function begin(random: () => number) {
  const send: Management["call"] = (path, options) =>
    call(`${processes[random() < 0.5 ? 0 : 1]?.url}${path}`, options);
  const given = reviewsOf({ ...one, call: send });
  const flagIds: string[] = [];
  const review = await given.reviewed({ approvals: 1 }, async ({ call: byKey, flagId }) => {
    const { id } = await byKey("POST", "/api/v1/flags", { key: "cart", name: "Cart" });
    await byKey("POST", "/api/v1/audiences", { key: "beta", name: "Beta" });
    flagIds.push(flagId, id);
    // No step changes this flag, so that the environment always uses the audience.
    const user = await byKey("POST", "/api/v1/flags", {
      key: "user",
      name: "User of the audience",
    });
    for (const each of [...flagIds, user.id])
      await byKey("PATCH", `/api/v1/flags/${each}`, {
        targeting_rules: [{ conditions: [{ audience: "beta" }] }],
      });
  });
  const steps = await createSteps({ given, review, flagIds, random, management: one });
  return { review, steps };
}

type Review = Awaited<ReturnType<typeof begin>>["review"];

const readEntries = ({ project }: Review, after: number) => one.sql<
  (AuditedEntry & { sequence: number })[]
>`
  select sequence::integer as sequence, action, cause, cause_id as "causeId",
    environment_id as "environmentId", flag_id as "flagId", state_before as before,
    state_after as after
  from changes where project_id = ${project.id} and sequence > ${after}
  order by sequence`;

async function readApplied(entries: readonly AuditedEntry[]) {
  const ids = entries.flatMap(({ after }) => after?.change_request ?? []);
  const rows = await one.sql<AppliedRequest[]>`
    select id, content_hash as "contentHash", changes, approvals
    from change_requests where id = any(${ids}::uuid[]) and status = 'applied'`;
  return new Map(rows.map((row) => [row.id, row]));
}

/**
 * Returns the open requests whose staleness differs between a list and an application, which reads all references again.
 * The processes can apply a due request between the two.
 */
async function findMisjudged({ project }: Review): Promise<string[]> {
  for (let attempt = 1; ; attempt += 1) {
    const place = await readPlace(one.sql, project.id);
    const { open } = await readOpen(one.sql, { projectId: project.id });
    const listed = await readDifferences(one.sql, place, open);
    const misjudged: string[] = [];
    for (const [index, { id }] of open.entries()) {
      const request = await findRequest(one.sql, { id, projectId: project.id });
      const base = await readBase(one.sql, place, request?.changes ?? []);
      const applied = differencesOf(request?.base ?? {}, base);
      if ((listed[index]?.length === 0) !== (applied.length === 0)) misjudged.push(id);
    }
    if (misjudged.length === 0 || attempt === 3) return misjudged;
  }
}

/** Compares the history of each flag with the audit log, which is read later and can contain more. */
async function compareHistory(
  { production }: Review,
  flagIds: string[],
  readLog: () => Promise<AuditedEntry[]>,
) {
  const rows = await one.sql<{ flagId: string; content: object }[]>`
    select flag_id as "flagId", content from history
    where flag_id = any(${flagIds}::uuid[]) and environment_id = ${production.id}
    order by flag_id, sequence`;
  const log = await readLog();
  for (const flagId of flagIds) {
    const [, ...changed] = rows.filter((row) => row.flagId === flagId);
    const audited = log.filter(
      (entry) =>
        entry.action === "state" &&
        entry.flagId === flagId &&
        entry.environmentId === production.id,
    );
    expect(changed.length).toBeGreaterThan(0);
    expect(changed.map(({ content }) => content)).toEqual(
      audited.slice(0, changed.length).map(({ after }) => after),
    );
  }
}

describe(`random interleavings with the seed ${testSeed}`, () => {
  it("apply nothing that was not approved, and nothing twice", async () => {
    const random = seededRandom();
    const { review, steps } = await begin(random);
    const model = createApprovalModel(review.production.id);
    let sequence = 0;
    const logged = new Map<string, number>();

    async function replay(witness: Witness, taken: number) {
      const entries = await readEntries(review, sequence);
      sequence = entries.at(-1)?.sequence ?? sequence;
      const applied = await readApplied(entries);
      const faults = entries.flatMap((entry) =>
        model.observe(entry, applied.get(entry.after?.change_request), witness),
      );
      const misjudged = await findMisjudged(review);
      expect({ taken, faults, misjudged }).toEqual({ taken, faults: [], misjudged: [] });
      for (const { action } of entries) logged.set(action, (logged.get(action) ?? 0) + 1);
    }

    await replay(nothingYet, 0);
    for (let taken = 0; taken < stepCount; ) {
      const count = 1 + Math.floor(random() * maxAtOnce);
      const witness = await steps.takeAtOnce(count);
      taken += count;
      await replay(witness, taken);
    }
    await compareHistory(review, model.flagIds(), () => readEntries(review, 0));
    const answers = Object.fromEntries([...steps.statuses].sort());
    if (isThorough) process.stderr.write(`${JSON.stringify({ answers, logged: [...logged] })}\n`);
    expect(Object.keys(answers).filter((key) => / 5\d\d$/.test(key))).toEqual([]);
    expect(logged.get("change_request_applied")).toBeGreaterThan(0);
  }, 3_600_000);
});

const nothingYet: Witness = {
  ...{ read: new Map(), approved: new Set(), contributors: new Map(), without: new Set() },
};
