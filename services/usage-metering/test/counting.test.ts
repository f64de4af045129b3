import { usageStream } from "@halyard/contracts";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { countMessages } from "../src/counting/count-messages.ts";
import {
  hourAgo,
  type Metering,
  makeEdge,
  makeTenant,
  openMetering,
  type Replica,
} from "./usage-fixture.ts";

/** What edges tell is counted exactly, by three replicas at once. */
let metering: Metering;
let replicas: [Replica, Replica, Replica];

beforeAll(async () => {
  metering = await openMetering();
  const { startReplica } = metering;
  replicas = await Promise.all([startReplica(), startReplica(), startReplica()]);
});
afterEach(() => metering.stepClock(0));
afterAll(() => metering?.close());

/** In an order that depends on the seed alone. */
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
  it("are counted once each, in whatever order and however often they come", async () => {
    const tenants = [makeTenant(), makeTenant(), makeTenant()];
    const edges = Array.from({ length: 20 }, () => makeEdge());
    const messages = edges.flatMap((edge) =>
      Array.from({ length: 10 }, () =>
        edge.message(tenants.map((tenant) => tenant.used({ requests: { flags: 2, evaluate: 3 } }))),
      ),
    );
    await Promise.all([
      metering.tell(...shuffled(messages, 1)),
      metering.tell(...shuffled(messages, 2)),
      metering.tell(...shuffled(messages, 3)),
    ]);
    await metering.allTaken();
    for (const { organizationId } of tenants) {
      expect(await metering.countedFor(organizationId)).toBe(20 * 10 * 5);
      expect(await monthsOf(organizationId)).toEqual([[expect.any(String), 20 * 10 * 5]]);
    }
    expect(await rangesOf(...edges)).toEqual(edges.map(() => "{[1,11)}"));
  });

  it("are kept by endpoint, and evaluations by flag and environment", async () => {
    const tenant = makeTenant();
    const flagId = uuidv7();
    const at = new Date().toISOString();
    const flags = [{ flag_id: flagId, evaluations: 4, evaluated_at: at }];
    const usage = { bulk_answers: 6, bulk_answered_at: at, flags };
    const edge = makeEdge();
    await metering.tell(
      edge.message([tenant.used({ requests: { flags: 5, ofrep_flags: 1 }, ...usage })]),
      edge.message([tenant.used({ requests: { evaluate: 4 }, ...usage })]),
    );
    await metering.allTaken();
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

describe("a message that comes again", () => {
  it("adds nothing when it was committed by a process that died before it acknowledged", async () => {
    const tenant = makeTenant();
    const message = makeEdge().message([tenant.used({ requests: { flags: 7 } })]);
    await countMessages(replicas[0].sql, [message]);
    await metering.tell(message);
    await metering.allTaken();
    expect(await metering.countedFor(tenant.organizationId)).toBe(7);
  });

  it("counts once in one transaction too", async () => {
    const tenant = makeTenant();
    const edge = makeEdge();
    const [first, second] = [edge.message([tenant.used()]), edge.message([tenant.used()])];
    const { counted } = await countMessages(replicas[0].sql, [first, second, first]);
    expect(counted).toEqual([first, second]);
    expect(await metering.countedFor(tenant.organizationId)).toBe(2);
  });

  it("counts once when many count it at the same moment", async () => {
    const tenant = makeTenant();
    const message = makeEdge().message([tenant.used({ requests: { flags: 7 } })]);
    const outcomes = await Promise.all(
      Array.from({ length: 9 }, () => countMessages(replicas[0].sql, [message])),
    );
    expect(outcomes.filter(({ counted }) => counted.length > 0)).toHaveLength(1);
    expect(await metering.countedFor(tenant.organizationId)).toBe(7);
  });

  it("is another one when it is of another life of the edge", async () => {
    const tenant = makeTenant();
    await metering.tell(
      makeEdge().message([tenant.used()]),
      makeEdge().message([tenant.used()]),
      makeEdge().message([tenant.used()]),
    );
    await metering.allTaken();
    expect(await metering.countedFor(tenant.organizationId)).toBe(3);
  });
});

describe("messages that are missing", () => {
  it("leave gaps, which close when they come", async () => {
    const tenant = makeTenant();
    const edge = makeEdge();
    const [first, second, third, fourth] = [1, 2, 3, 4].map(() => edge.message([tenant.used()]));
    if (!first || !second || !third || !fourth) throw new Error("four were made");
    await metering.tell(fourth, first, third);
    await metering.allTaken();
    expect(await rangesOf(edge)).toEqual(["{[1,2),[3,5)}"]);
    await metering.tell(second);
    await metering.allTaken();
    expect(await rangesOf(edge)).toEqual(["{[1,5)}"]);
    expect(await metering.countedFor(tenant.organizationId)).toBe(4);
  });
});

describe("a message of an edge of a later release", () => {
  it("is counted with the endpoints that this release does not know, and without other members", async () => {
    const tenant = makeTenant();
    const edge = makeEdge();
    const requests = { flags: 1, flags_delta: 2 };
    const message = { ...edge.message([tenant.used({ requests })]), region: "eu" };
    await metering.client.publish(usageStream.recorded.subject, JSON.stringify(message));
    await metering.allTaken();
    expect(await metering.countedFor(tenant.organizationId)).toBe(3);
  });
});

describe("a message that cannot be counted", () => {
  const deadLetter = async () => {
    const { state } = await metering.manager.streams.info("SET_ASIDE", { subjects_filter: ">" });
    return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
  };

  it("is set aside when it does not parse, and those beside it are counted", async () => {
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
    await metering.tell(good);
    await metering.allTaken();
    expect(await deadLetter()).toBe(bad.length);
    expect(await metering.countedFor(tenant.organizationId)).toBe(1);
  });

  it("is set aside when the database will not have it, and those beside it are counted", async () => {
    const before = await deadLetter();
    const tenant = makeTenant();
    const good = Array.from({ length: 30 }, () => makeEdge().message([tenant.used()]));
    const bad = makeEdge().message([tenant.used()], [{ key_id: "\0", used_at: hourAgo(0) }]);
    await metering.tell(...good.slice(0, 15), bad, ...good.slice(15));
    await metering.allTaken();
    expect(await deadLetter()).toBe(before + 1);
    expect(await metering.countedFor(tenant.organizationId)).toBe(good.length);
  });
});

/** Sets the clock of usage metering to an instant, from which it goes on. */
const setClock = (instant: string) => metering.stepClock(Date.parse(instant) - Date.now());

describe("an edge whose clock is wrong", () => {
  it("hides nothing: what it tells counts in the present hour", async () => {
    await setClock("2031-05-15T10:10:00.000Z");
    const tenant = makeTenant();
    const edge = makeEdge();
    const tell = (hour: string) => metering.tell(edge.message([tenant.used({ hour })]));
    await tell("2031-05-08T10:00:00.000Z");
    await tell("2031-05-15T12:00:00.000Z");
    await tell("2032-05-15T10:00:00.000Z");
    await tell("1970-01-01T00:00:00.000Z");
    await metering.allTaken();
    expect(await hoursOf(tenant.organizationId)).toEqual([
      { hour: new Date("2031-05-15T10:00:00.000Z"), endpoint: "flags", requests: 4 },
    ]);
    expect(await metricOf("halyard_usage_misdated_requests_total")).toBeGreaterThanOrEqual(4);
  });

  it("is believed within an hour ahead, and seven days back", async () => {
    await setClock("2031-05-15T10:10:00.000Z");
    const tenant = makeTenant();
    const edge = makeEdge();
    const hours = [
      "2031-05-08T11:00:00.000Z",
      "2031-05-15T09:00:00.000Z",
      "2031-05-15T11:00:00.000Z",
    ];
    for (const hour of hours) await metering.tell(edge.message([tenant.used({ hour })]));
    await metering.allTaken();
    const kept = await hoursOf(tenant.organizationId);
    expect(kept.map(({ hour }) => hour.toISOString())).toEqual(hours);
  });

  /** Summed up over all replicas. */
  async function metricOf(name: string): Promise<number> {
    const texts = await Promise.all(replicas.map(({ metrics }) => metrics.metrics()));
    const values = texts.map((text) =>
      Number(new RegExp(`^${name}\\{.*\\} (.+)$`, "m").exec(text)?.[1]),
    );
    return values.reduce((sum, value) => sum + value, 0);
  }
});

describe("the turn of a month", () => {
  it("puts each hour in its own month, also when the old one's are told afterwards", async () => {
    await setClock("2031-02-01T00:00:10.000Z");
    const tenant = makeTenant();
    const edge = makeEdge();
    const tell = (hour: string, flags: number) =>
      metering.tell(edge.message([tenant.used({ hour, requests: { flags } })]));
    await tell("2031-01-31T23:00:00.000Z", 3);
    await tell("2031-02-01T00:00:00.000Z", 5);
    await tell("2031-01-31T23:00:00.000Z", 4);
    await metering.allTaken();
    expect(await monthsOf(tenant.organizationId)).toEqual([
      ["2031-01", 7],
      ["2031-02", 5],
    ]);
  });
});
