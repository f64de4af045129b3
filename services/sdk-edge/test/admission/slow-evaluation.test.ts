import type { TargetingRule } from "@halyard/contracts";
import { call, eventually } from "@halyard/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { maxRunning, maxWaiting } from "../../src/admission/costly-evaluations.ts";
import { apiKey, flagEntry, id, revokedKey } from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";

/**
 * The maximum number of rules and a large context take a good part of a second. They belong to one customer, but the
 * edge serves all customers.
 */
const slow = apiKey({ key_kind: "server" });
const other = apiKey({ environment_id: id("env", 2) });
const flooding = apiKey({ environment_id: id("env", 3) });
const neighbor = apiKey({ organization_id: id("org", 2), environment_id: id("env", 4) });
const longText = "a".repeat(20_000);
/** Almost as long as a body may be. Its evaluation takes many slices on a fast machine too. */
const longestText = "a".repeat(60_000);
let edge: EdgeServer;

beforeAll(async () => {
  edge = await startEdgeServer([
    slow.entry,
    other.entry,
    flooding.entry,
    neighbor.entry,
    flagEntry({ key: "slow", enabled: true, targeting_rules: [...slowRules(), forVip()] }),
    flagEntry({
      flag_id: id("flag", 2),
      environment_id: id("env", 2),
      key: "other",
      enabled: true,
    }),
    ...Array.from({ length: 60 }, (_, number) =>
      flagEntry({
        flag_id: id("flag", 10 + number),
        environment_id: id("env", 3),
        key: `slow-${number}`,
        enabled: true,
        targeting_rules: slowRules(),
      }),
    ),
    flagEntry({
      flag_id: id("flag", 3),
      environment_id: id("env", 4),
      key: "slow",
      enabled: true,
      targeting_rules: slowRules(),
    }),
  ]);
});
afterAll(() => edge.stop());

const vip = { text: longText, plan: "vip" };
const nobodySpecial = { text: longText, plan: "free" };
const ask = (path: string, body: unknown, key = slow.text) =>
  call(`${edge.url}${path}`, { key, method: "POST", body });

describe.each([
  {
    endpoint: "all flags",
    path: "/api/v1/sdk/flags",
    body: (user: object) => user,
    value: (answered: { flags: { slow: boolean } }) => answered.flags.slow,
  },
  {
    endpoint: "all flags in their types",
    path: "/api/v1/sdk/values",
    body: (user: object) => user,
    value: (answered: { values: { slow: { value: boolean } } }) => answered.values.slow.value,
  },
  {
    endpoint: "one flag",
    path: "/api/v1/sdk/evaluate?key=slow",
    body: (user: object) => ({ user: { attributes: user } }),
    value: (answered: { value: boolean }) => answered.value,
  },
  {
    endpoint: "one flag with its explanation",
    path: "/api/v1/sdk/evaluate?key=slow&explain=true",
    body: (user: object) => ({ user: { attributes: user } }),
    value: (answered: { value: boolean }) => answered.value,
  },
  {
    endpoint: "all flags by OFREP",
    path: "/ofrep/v1/evaluate/flags",
    body: (user: object) => ({ context: user }),
    value: (answered: { flags: [{ value: boolean }] }) => answered.flags[0].value,
  },
  {
    endpoint: "one flag by OFREP",
    path: "/ofrep/v1/evaluate/flags/slow",
    body: (user: object) => ({ context: user }),
    value: (answered: { value: boolean }) => answered.value,
  },
])("given a slow evaluation of $endpoint", ({ path, body, value }) => {
  it("serves other requests meanwhile, and then returns the correct value", async () => {
    let isAnswered = false;
    const answering = ask(path, body({ ...vip, text: longestText })).finally(() => {
      isAnswered = true;
    });
    let answeredMeanwhile = 0;
    while (!isAnswered) {
      const { status } = await call(`${edge.url}/api/v1/sdk/flags`, { key: other.text });
      expect(status).toBe(200);
      answeredMeanwhile += 1;
    }
    const answered = await answering;
    expect(answered.status).toBe(200);
    expect(value(answered.body)).toBe(true);
    // Evaluated in one go, it would block all requests that arrive after it: two are answered on any machine.
    expect(answeredMeanwhile).toBeGreaterThan(3);
  });

  it("distinguishes users", async () => {
    expect(value((await ask(path, body(nobodySpecial))).body)).toBe(false);
  });
});

describe("given more costly evaluations of one organization than the maximum that can wait", () => {
  const all = "/api/v1/sdk/flags";
  const asking: Promise<unknown>[] = [];
  let disconnect: AbortController;
  let rejected: Response[];
  let finished: number;

  beforeEach(async () => {
    disconnect = new AbortController();
    rejected = [];
    finished = 0;
    for (let request = 0; request < maxWaiting + maxRunning + 5; request += 1)
      asking.push(flood(disconnect.signal));
    await eventually(() => rejected.length >= 5);
  });
  afterEach(async () => {
    disconnect.abort();
    await Promise.all(asking.splice(0));
    await untilWaiting(0);
  });

  async function flood(signal: AbortSignal): Promise<void> {
    const request = postAs(flooding.text, all, vip, signal);
    const response = await fetch(request).catch(() => undefined);
    if (response?.status === 503) rejected.push(response);
    else if (response !== undefined) finished += 1;
  }

  it("rejects the excess with 503 and Retry-After, and counts it", async () => {
    expect(rejected[0]?.headers.get("retry-after")).toBe("1");
    expect(await rejected[0]?.json()).toMatchObject({ error: { code: "SERVER_002" } });
    expect(await edge.metric("costly_evaluations_rejected_total")).toBeGreaterThanOrEqual(5);
  });

  it("evaluates for another organization before most of them", async () => {
    const before = finished;
    const { status } = await call(edge.url + all, {
      key: neighbor.text,
      method: "POST",
      body: nobodySpecial,
    });
    expect(status).toBe(200);
    expect(finished - before).toBeLessThanOrEqual(maxRunning);
  });
});

describe("given a key that is revoked or expires while its evaluation waits", () => {
  /**
   * Ends a key with `end` while a request with it waits, and returns the answer. On a busy machine the edge may answer
   * 503 before, which is not what these tests are about, so they ask again.
   */
  async function answerAfter(
    end: (key: ReturnType<typeof apiKey>) => unknown,
    requestOf: (key: string) => Request,
    fields: Parameters<typeof apiKey>[0] = {},
  ): Promise<Response> {
    const disconnect = new AbortController();
    const flood = postAs(flooding.text, "/api/v1/sdk/flags", vip, disconnect.signal);
    const running = Array.from({ length: maxRunning + 1 }, () =>
      fetch(flood.clone()).catch(() => undefined),
    );
    try {
      await untilWaiting(1);
      const brief = apiKey({ key_kind: "server", ...fields });
      await edge.feed(brief.entry);
      const answering = fetch(requestOf(brief.text));
      await untilWaiting(2);
      await end(brief);
      disconnect.abort();
      const answered = await answering;
      await answered.body?.cancel();
      return answered;
    } finally {
      disconnect.abort();
      await Promise.all(running);
      await untilWaiting(0);
    }
  }

  const post = (path: string, body: unknown) => (key: string) => postAs(key, path, body);
  const openStream = (key: string) =>
    new Request(`${edge.url}/api/v1/sdk/stream`, {
      headers: {
        authorization: `Bearer ${key}`,
        "x-user-attributes": `text=${longText.slice(0, 5_000)}`,
      },
    });

  it.each([
    ["all flags", post("/api/v1/sdk/flags", vip)],
    ["one flag", post("/api/v1/sdk/evaluate?key=slow", { user: { attributes: vip } })],
    [
      "an explanation",
      post("/api/v1/sdk/evaluate?key=slow&explain=true", { user: { attributes: vip } }),
    ],
    ["all flags by OFREP", post("/ofrep/v1/evaluate/flags", { context: vip })],
    ["one flag by OFREP", post("/ofrep/v1/evaluate/flags/slow", { context: vip })],
    ["a stream", openStream],
  ])("answers 401 to a request for %s", async (_what, requestOf) => {
    const revoke = ({ keyId }: { keyId: string }) => edge.feed(revokedKey(keyId));
    const answered = await eventually(() => answerAfter(revoke, requestOf), {
      until: ({ status }) => status !== 503,
    });
    expect(answered.status).toBe(401);
  });

  it("answers 401 when the key has expired", async () => {
    const hourMs = 3_600_000;
    let ahead = 0;
    const expire = () => {
      edge.passTime(hourMs);
      ahead += hourMs;
    };
    const answered = await eventually(
      () =>
        answerAfter(expire, post("/api/v1/sdk/flags", vip), {
          expires_at: new Date(Date.now() + ahead + hourMs).toISOString(),
        }),
      { until: ({ status }) => status !== 503 },
    );
    expect(answered.status).toBe(401);
  });
});

function postAs(key: string, path: string, body: unknown, signal?: AbortSignal): Request {
  return new Request(edge.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });
}

async function untilWaiting(count: number): Promise<void> {
  await eventually(() => edge.metric("costly_evaluations_waiting"), {
    until: (waiting) => waiting === count,
  });
}

/** Returns rules whose last condition never holds, so that all other conditions are evaluated. */
function slowRules(): TargetingRule[] {
  return Array.from({ length: 40 }, (_, rule) => ({
    conditions: [
      ...Array.from({ length: 9 }, (_, at) => ({
        attribute: "text",
        operator: "not_contains" as const,
        value: `ab${rule}-${at}`,
      })),
      { attribute: "plan", operator: "equals" as const, value: "nobody's" },
    ],
  }));
}

function forVip(): TargetingRule {
  return { conditions: [{ attribute: "plan", operator: "equals", value: "vip" }] };
}
