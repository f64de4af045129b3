import { usageStream } from "@halyard/contracts";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { countMessages } from "../src/counting/count-messages.ts";
import { hourAgo, makeEdge, makeTenant, openMetering } from "./usage-fixture.ts";

/** The counting of messages, exact with three replicas. */

const metering = await openMetering();
afterAll(() => metering.close());
const { startReplica } = metering;
const replicas = await Promise.all([startReplica(), startReplica(), startReplica()]);
afterEach(() => metering.stepClock(0));

/** Returns the items in an order that depends only on the seed. */
function shuffled<T>(items: readonly T[], seed: number): T[] {
  return items
    .map((item, index) => ({ item, rank: Math.sin(seed + index * 7.31) }))
    .toSorted((one, other) => one.rank - other.rank)
    .map(({ item }) => item);
}

async function rangesOf(...edges: { edge: string }[]): Promise<string[]> {
  const kept = await metering.admin`
    select counted::text from edges where edge = any(${edges.map(({ edge }) => edge)}::uuid[])`;
  return kept.map(({ counted }) => counted);
}

const hoursOf = (organizationId: string) => metering.admin`
  select hour, endpoint, requests::int from request_hours
  where organization_id = ${organizationId} order by hour, endpoint`;

const monthsOf = async (organizationId: string) => {
  const months = await metering.admin`
    select to_char(month, 'YYYY-MM') as month, requests::int from organization_months
    where organization_id = ${organizationId} order by month`;
  return months.map(({ month, requests }) => [month, requests]);
};

describe("messages of many edges", () => {
  it("are counted exactly once, in any order and with any repetition", async () => {
    const tenants = [makeTenant(), makeTenant(), makeTenant()];
    const edges = Array.from({ length: 20 }, () => makeEdge());
    const messages = edges.flatMap((edge) =>
      Array.from({ length: 10 }, () =>
        edge.message(tenants.map((tenant) => tenant.used({ requests: { flags: 2, evaluate: 3 } }))),
      ),
    );
    await Promise.all([
      metering.send(...shuffled(messages, 1)),
      metering.send(...shuffled(messages, 2)),
      metering.send(...shuffled(messages, 3)),
    ]);
    await metering.allProcessed();
    for (const { organizationId } of tenants) {
      expect(await metering.countedFor(organizationId)).toBe(20 * 10 * 5);
      expect(await monthsOf(organizationId)).toEqual([[expect.any(String), 20 * 10 * 5]]);
    }
    expect(await rangesOf(...edges)).toEqual(edges.map(() => "{[1,11)}"));
  });

  it("are stored by endpoint, and evaluations by flag and environment", async () => {
    const tenant = makeTenant();
    const flagId = uuidv7();
    const at = new Date().toISOString();
    const flags = [{ flag_id: flagId, evaluations: 4, evaluated_at: at }];
    const usage = { bulk_answers: 6, bulk_answered_at: at, flags };
    const edge = makeEdge();
    await metering.send(
      edge.message([tenant.used({ requests: { flags: 5, ofrep_flags: 1 }, ...usage })]),
      edge.message([tenant.used({ requests: { evaluate: 4 }, ...usage })]),
    );
    await metering.allProcessed();
    expect(await hoursOf(tenant.organizationId)).toMatchObject([
      { endpoint: "evaluate", requests: 4 },
      { endpoint: "flags", requests: 5 },
      { endpoint: "ofrep_flags", requests: 1 },
    ]);
    const [kept] = await metering.admin`
      select (select evaluations::int from flag_hours where flag_id = ${flagId}) as single,
        (select answers::int from bulk_answer_hours
          where environment_id = ${tenant.environmentId}) as bulk`;
    expect(kept).toEqual({ single: 8, bulk: 12 });
  });
});

describe("a repeated message", () => {
  it("adds nothing if a process committed it and died before it acknowledged", async () => {
    const tenant = makeTenant();
    const message = makeEdge().message([tenant.used({ requests: { flags: 7 } })]);
    await countMessages(replicas[0].sql, [message]);
    await metering.send(message);
    await metering.allProcessed();
    expect(await metering.countedFor(tenant.organizationId)).toBe(7);
  });

  it("counts once within one transaction", async () => {
    const tenant = makeTenant();
    const edge = makeEdge();
    const [first, second] = [edge.message([tenant.used()]), edge.message([tenant.used()])];
    const { counted } = await countMessages(replicas[0].sql, [first, second, first]);
    expect(counted).toEqual([first, second]);
    expect(await metering.countedFor(tenant.organizationId)).toBe(2);
  });

  it("counts once in concurrent transactions", async () => {
    const tenant = makeTenant();
    const message = makeEdge().message([tenant.used({ requests: { flags: 7 } })]);
    const outcomes = await Promise.all(
      Array.from({ length: 9 }, () => countMessages(replicas[0].sql, [message])),
    );
    expect(outcomes.filter(({ counted }) => counted.length > 0)).toHaveLength(1);
    expect(await metering.countedFor(tenant.organizationId)).toBe(7);
  });

  it("counts again with the id of another life of the edge", async () => {
    const tenant = makeTenant();
    await metering.send(
      makeEdge().message([tenant.used()]),
      makeEdge().message([tenant.used()]),
      makeEdge().message([tenant.used()]),
    );
    await metering.allProcessed();
    expect(await metering.countedFor(tenant.organizationId)).toBe(3);
  });
});

describe("missing messages", () => {
  it("leave gaps, which close when they arrive", async () => {
    const tenant = makeTenant();
    const edge = makeEdge();
    const [first, second, third, fourth] = [1, 2, 3, 4].map(() => edge.message([tenant.used()]));
    if (!first || !second || !third || !fourth) throw new Error("four were made");
    await metering.send(fourth, first, third);
    await metering.allProcessed();
    expect(await rangesOf(edge)).toEqual(["{[1,2),[3,5)}"]);
    await metering.send(second);
    await metering.allProcessed();
    expect(await rangesOf(edge)).toEqual(["{[1,5)}"]);
    expect(await metering.countedFor(tenant.organizationId)).toBe(4);
  });
});

describe("a message from an edge of a later release", () => {
  it("is counted with unknown endpoints, and its other unknown members are ignored", async () => {
    const tenant = makeTenant();
    const edge = makeEdge();
    const requests = { flags: 1, flags_delta: 2 };
    const message = { ...edge.message([tenant.used({ requests })]), region: "eu" };
    await metering.client.publish(usageStream.recorded.subject, JSON.stringify(message));
    await metering.allProcessed();
    expect(await metering.countedFor(tenant.organizationId)).toBe(3);
  });
});

describe("a message that cannot be counted", () => {
  const countDeadLetters = async () => {
    const { state } = await metering.manager.streams.info("SET_ASIDE", { subjects_filter: ">" });
    return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
  };

  it("is dead-lettered if it does not parse, and the others are counted", async () => {
    const tenant = makeTenant();
    const edge = makeEdge();
    const good = edge.message([tenant.used()]);
    const bad = [
      "nonsense",
      "{}",
      JSON.stringify({ ...good, sequence: 0 }),
      JSON.stringify({ ...good, sequence: 1.5 }),
      JSON.stringify({ ...good, edge: "edge-1" }),
      JSON.stringify(edge.message([tenant.used({ requests: { flags: -1 } })])),
      JSON.stringify(edge.message([tenant.used({ hour: "yesterday" })])),
    ];
    for (const payload of bad) await metering.client.publish(usageStream.recorded.subject, payload);
    await metering.send(good);
    await metering.allProcessed();
    expect(await countDeadLetters()).toBe(bad.length);
    expect(await metering.countedFor(tenant.organizationId)).toBe(1);
  });

  it("is dead-lettered if the database rejects it, and the others are counted", async () => {
    const before = await countDeadLetters();
    const tenant = makeTenant();
    const good = Array.from({ length: 30 }, () => makeEdge().message([tenant.used()]));
    const bad = makeEdge().message([tenant.used()], [{ key_id: "\0", used_at: hourAgo(0) }]);
    await metering.send(...good.slice(0, 15), bad, ...good.slice(15));
    await metering.allProcessed();
    expect(await countDeadLetters()).toBe(before + 1);
    expect(await metering.countedFor(tenant.organizationId)).toBe(good.length);
  });
});

/** Sets the clock of usage metering, which continues from there. */
const setClock = (instant: string) => metering.stepClock(Date.parse(instant) - Date.now());

describe("an edge whose clock is wrong", () => {
  it("loses nothing: its usage counts in the current hour", async () => {
    await setClock("2031-05-15T10:10:00.000Z");
    const tenant = makeTenant();
    const edge = makeEdge();
    const send = (hour: string) => metering.send(edge.message([tenant.used({ hour })]));
    await send("2031-05-08T10:00:00.000Z");
    await send("2031-05-15T12:00:00.000Z");
    await send("2032-05-15T10:00:00.000Z");
    await send("1970-01-01T00:00:00.000Z");
    await metering.allProcessed();
    expect(await hoursOf(tenant.organizationId)).toEqual([
      { hour: new Date("2031-05-15T10:00:00.000Z"), endpoint: "flags", requests: 4 },
    ]);
    expect(await metricOf("halyard_usage_misdated_requests_total")).toBeGreaterThanOrEqual(4);
  });

  it("is accepted up to an hour ahead and seven days back", async () => {
    await setClock("2031-05-15T10:10:00.000Z");
    const tenant = makeTenant();
    const edge = makeEdge();
    const hours = [
      "2031-05-08T11:00:00.000Z",
      "2031-05-15T09:00:00.000Z",
      "2031-05-15T11:00:00.000Z",
    ];
    for (const hour of hours) await metering.send(edge.message([tenant.used({ hour })]));
    await metering.allProcessed();
    const kept = await hoursOf(tenant.organizationId);
    expect(kept.map(({ hour }) => hour.toISOString())).toEqual(hours);
  });

  /** Returns the sum of a metric over all replicas. */
  async function metricOf(name: string): Promise<number> {
    const texts = await Promise.all(replicas.map(({ metrics }) => metrics.metrics()));
    const values = texts.map((text) =>
      Number(new RegExp(`^${name}\\{.*\\} (.+)$`, "m").exec(text)?.[1]),
    );
    return values.reduce((sum, value) => sum + value, 0);
  }
});

describe("the beginning of a month", () => {
  it("counts each hour in its own month, even if the previous month arrives afterwards", async () => {
    await setClock("2031-02-01T00:00:10.000Z");
    const tenant = makeTenant();
    const edge = makeEdge();
    const send = (hour: string, flags: number) =>
      metering.send(edge.message([tenant.used({ hour, requests: { flags } })]));
    await send("2031-01-31T23:00:00.000Z", 3);
    await send("2031-02-01T00:00:00.000Z", 5);
    await send("2031-01-31T23:00:00.000Z", 4);
    await metering.allProcessed();
    expect(await monthsOf(tenant.organizationId)).toEqual([
      ["2031-01", 7],
      ["2031-02", 5],
    ]);
  });
});
