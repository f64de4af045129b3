import type { FlagEvent } from "@halyard/contracts";
import type { Statement as Recorded, Sql } from "@halyard/postgres";
import {
  deleteOldDeliveries,
  deleteOldEvents,
} from "../../../services/webhook-dispatcher/src/clean-up.ts";
import { listDeliveries } from "../../../services/webhook-dispatcher/src/deliveries/delivery-store.ts";
import { recordAttempt } from "../../../services/webhook-dispatcher/src/dispatch/attempt-store.ts";
import {
  type ClaimedDelivery,
  claimDeliveries,
  defaultClaimTimes,
  expiredClaims,
  findLanes,
  releaseExpiredClaims,
  renewClaims,
  settleLanes,
} from "../../../services/webhook-dispatcher/src/dispatch/claim-store.ts";
import {
  defaultBounds,
  planClaims,
  searchesFor,
} from "../../../services/webhook-dispatcher/src/dispatch/plan-claims.ts";
import { recordEvent } from "../../../services/webhook-dispatcher/src/events/consume-events.ts";
import type { Bench } from "../benchmark.ts";
import { asDatabase, connectToSchema, explained, genericPlan } from "../system/recording-sql.ts";
import { payload } from "./payload.ts";

/**
 * Times and explains the dispatcher's statements, taken from its code. Each one runs in a transaction that is
 * rolled back.
 */
export type ProductStatements = {
  /** Milliseconds to fill all slots, without the commits. */
  timeClaim(): Promise<{ tookMs: number; claimed: number }>;
  /** Milliseconds to claim deliveries of the webhook with the largest backlog. */
  timeClaimOfLargest(): Promise<{ tookMs: number; claimed: number }>;
  /** The query plan of each statement. */
  explain(): Promise<readonly Plan[]>;
};

export type Plan = {
  purpose: string;
  text: string;
  /** The generic plan; undefined if PostgreSQL plans the statement each time. */
  genericText: string | undefined;
};

const claim = "00000000-0000-0000-0000-000000000001";
/** Maximum number of concurrent attempts of a webhook. */
const ofLargest = defaultBounds.webhook;
/** Time before its due time at which a dispatcher finds a lane. */
const aheadMs = 1_000;
const pageSize = 101;
const batch = 500;
const retentionDays = 30;

export function openProductStatements(bench: Bench, adminUrl: string): ProductStatements {
  const sql = connectToSchema(adminUrl, "webhooks");
  bench.afterwards(() => sql.end());

  /** Runs code to record its statements, rolls it back, and explains each statement. */
  async function plansOf({ purpose, prepare, run }: Statements): Promise<Plan[]> {
    const recorded: Recorded[] = [];
    return rolledBack(sql, recorded, async (tx) => {
      const found = await prepare(tx);
      await tx`savepoint before`;
      recorded.length = 0;
      await run(tx, found);
      const statements = recorded.filter(({ text }) => isStatement.test(text));
      await tx`rollback to savepoint before`;
      const plans: Plan[] = [];
      for (const [index, statement] of statements.entries()) {
        const genericText = await genericPlan(tx, statement);
        const text = await explained(tx, "analyze, buffers, costs off", statement);
        const part = statements.length === 1 ? "" : `, ${index + 1} of ${statements.length}`;
        plans.push({ purpose: `${purpose}${part}`, text, genericText });
      }
      return plans;
    });
  }

  return {
    timeClaim: () => rolledBack(sql, [], (tx) => timed(() => fillSlots(tx))),
    timeClaimOfLargest: () =>
      rolledBack(sql, [], async (tx) => {
        const webhookIds = [await findLargest(tx)];
        return timed(() => claimAndSettle(tx, webhookIds, ofLargest));
      }),
    async explain() {
      const plans: Plan[] = [];
      for (const one of statements) plans.push(...(await plansOf(one)));
      return plans;
    },
  };
}

const isStatement = /^\s*(?:select|insert|update|delete|with)\b/;

/** Claims deliveries as a dispatcher with free slots does. */
async function fillSlots(tx: Sql): Promise<ClaimedDelivery[]> {
  const searches = searchesFor([], defaultBounds);
  const lanes = [];
  for (const search of searches) lanes.push(...(await findLanes(tx, search, aheadMs)));
  const planned = planClaims(lanes, [], defaultBounds);
  const claimed: ClaimedDelivery[] = [];
  for (const [atMost, claims] of Map.groupBy(planned, (one) => one.atMost)) {
    const webhookIds = claims.map(({ webhookId }) => webhookId);
    claimed.push(...(await claimDeliveries(tx, { webhookIds, atMost, claim, claimedAtMs: 0 })));
  }
  await settleLanes(
    tx,
    planned.map(({ webhookId }) => webhookId),
  );
  return claimed;
}

async function claimAndSettle(
  tx: Sql,
  webhookIds: readonly string[],
  atMost: number,
): Promise<ClaimedDelivery[]> {
  const claimed = await claimDeliveries(tx, { webhookIds, atMost, claim, claimedAtMs: 0 });
  await settleLanes(tx, webhookIds);
  return claimed;
}

async function timed(work: () => Promise<ClaimedDelivery[]>) {
  const beganMs = performance.now();
  const claimed = await work();
  return { tookMs: performance.now() - beganMs, claimed: claimed.length };
}

type Found = { webhookId: string; delivery: ClaimedDelivery | undefined };
type Statements = {
  purpose: string;
  /** Prepares the statement and returns its parameters. */
  prepare: (tx: Sql) => Promise<Found>;
  run: (tx: Sql, found: Found) => Promise<unknown>;
};

const statements: readonly Statements[] = [
  { purpose: "finding and claiming what is due", prepare: findOne, run: (tx) => fillSlots(tx) },
  {
    purpose: "claiming from a large backlog",
    prepare: findOne,
    run: (tx, { webhookId }) => claimAndSettle(tx, [webhookId], ofLargest),
  },
  {
    purpose: "recording that a delivery was made",
    prepare: claimOne,
    run: (tx, { delivery }) => recordAttempt(tx, madeAttempt(delivery, true)),
  },
  {
    purpose: "recording that an attempt failed",
    prepare: claimOne,
    run: (tx, { delivery }) => recordAttempt(tx, madeAttempt(delivery, false)),
  },
  {
    purpose: "making deliveries of an event",
    prepare: findOne,
    run: (tx, found) => recordNewEvent(tx, found),
  },
  {
    purpose: "freeing claims that have run out",
    prepare: claimOneThatRunsOut,
    run: async (tx) => releaseExpiredClaims(tx, await expiredClaims(tx, batch)),
  },
  {
    purpose: "renewing claims that have run out",
    prepare: claimOneThatRunsOut,
    run: (tx, { delivery }) =>
      renewClaims(tx, [delivery ?? nothingClaimed()], defaultClaimTimes.lastsMs),
  },
  {
    purpose: "deleting old deliveries",
    prepare: claimOne,
    run: (tx) => deleteOldDeliveries(tx, retentionDays),
  },
  { purpose: "forgetting old events", prepare: findOne, run: (tx) => deleteOldEvents(tx) },
  {
    purpose: "a page of a webhook's deliveries",
    prepare: findOne,
    run: (tx, { webhookId }) =>
      listDeliveries(tx, { webhookId, status: "failed", beforeId: undefined, limit: pageSize }),
  },
];

async function findOne(tx: Sql): Promise<Found> {
  return { webhookId: await findLargest(tx), delivery: undefined };
}

async function claimOne(tx: Sql): Promise<Found> {
  const { webhookId } = await findOne(tx);
  const [delivery] = await claimAndSettle(tx, [webhookId], ofLargest);
  return { webhookId, delivery };
}

async function claimOneThatRunsOut(tx: Sql): Promise<Found> {
  const found = await claimOne(tx);
  await tx`update deliveries set claimed_until = now() - interval '1 s' where claimed_by = ${claim}`;
  return found;
}

function nothingClaimed(): never {
  throw new Error("nothing was claimed");
}

async function findLargest(tx: Sql): Promise<string> {
  const [largest] = await tx<[{ id: string }]>`
    select id from webhooks where name = 'webhook 0'`;
  return largest.id;
}

function madeAttempt(delivery: ClaimedDelivery | undefined, succeeded: boolean) {
  if (delivery === undefined) return nothingClaimed();
  const attempt = {
    id: crypto.randomUUID(),
    attemptedAt: new Date(),
    statusCode: succeeded ? 200 : 500,
    durationMs: 12,
    error: null,
    responseBody: "",
  };
  const next = succeeded
    ? ({ status: "delivered", goneOnly: false } as const)
    : ({ status: "retrying", goneOnly: false, afterMs: 60_000 } as const);
  return { delivery, attempt, next, slow: false };
}

async function recordNewEvent(tx: Sql, { webhookId }: Found): Promise<number> {
  const [place] = await tx<[{ organization_id: string; project_id: string }]>`
    select organization_id, project_id from webhooks where id = ${webhookId}`;
  const told = JSON.parse(payload) as Pick<FlagEvent, "flag" | "environment" | "triggered_by">;
  const event = {
    ...told,
    ...place,
    id: claim,
    event: "flag.toggled",
    timestamp: new Date().toISOString(),
    state: { enabled: true, rollout_percentage: 100, targeting_rules: [] },
  };
  return recordEvent(tx, event as unknown as FlagEvent, () => crypto.randomUUID());
}

/** Transactions of the code become part of this one, which is rolled back. */
async function rolledBack<T>(
  sql: Sql,
  recorded: Recorded[],
  work: (tx: Sql) => Promise<T>,
): Promise<T> {
  let result: { value: T } | undefined;
  const intended = new Error("as intended");
  try {
    await sql.begin(async (transaction) => {
      result = { value: await work(asDatabase(transaction, recorded)) };
      throw intended;
    });
  } catch (error) {
    if (error !== intended) throw error;
  }
  return (result as { value: T }).value;
}
