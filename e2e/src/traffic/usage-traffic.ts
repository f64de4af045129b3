import { setTimeout as delay } from "node:timers/promises";
import type { UsageEndpoint } from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import type { Edge } from "../system/system.ts";
import type { Tenant } from "../system/tenancy.ts";
import type { CreatedFlag } from "./changes.ts";
import { type RawAnswer, type RawRequest, sendRaw } from "./raw-request.ts";

/**
 * Sends valid and invalid requests of every kind to every edge, and records them with their results. Each request uses
 * its own connection, so it is certain whether an edge has received it, unless that edge dies during the request.
 */
export type Sent = {
  /** The endpoint under which the request is counted, or undefined if it is not counted. */
  endpoint: UsageEndpoint | undefined;
  environmentId: string;
  /** The flags that the response evaluates, each once. */
  evaluates: readonly CreatedFlag[];
  /** Undefined if there was no response. */
  status: number | undefined;
  startedMs: number;
  endedMs: number;
};

export type Traffic = {
  sent: readonly Sent[];
  /** Descriptions of unexpected responses. */
  complaints: readonly string[];
  /** Waits until `more` requests have a response. */
  goesOn(more?: number): Promise<void>;
  stop(): Promise<void>;
};

export type Kind = Pick<Sent, "endpoint" | "environmentId" | "evaluates"> & {
  asked: RawRequest;
  status: number;
};

export const flagsPath = "/api/v1/sdk/flags";
const rulesetPath = "/api/v1/sdk/ruleset?format=2";
const bulkPath = "/ofrep/v1/evaluate/flags";
const workersPerEdge = 2;
const disconnectedMs = 20;
const enough = 100;
const goesOnWithinMs = 30_000;
const tooLargeBytes = 70_000;

/** Returns every kind of request with its expected response, and the requests sent to prepare them. */
export async function everyKind(
  edge: Edge,
  tenant: Tenant,
  flags: readonly CreatedFlag[],
): Promise<{ kinds: Kind[]; sent: Sent[] }> {
  const [flag] = flags as [CreatedFlag];
  const asking = { edge, tenant, flags };
  const bulk = await askOnce(asking, "ofrep_flags", {
    method: "POST",
    path: bulkPath,
    body: '{"context":{}}',
    headers: { "content-type": "application/json" },
  });
  const stream = new URL(JSON.parse(bulk.text).eventStreams[0].endpoint.requestUri, edge.url);
  const all = await askOnce(asking, "flags", { method: "GET", path: flagsPath });
  const etag = String(all.headers.etag);

  const kinds: Kind[] = [];
  const ask = (
    counts: { as?: UsageEndpoint; for?: readonly CreatedFlag[]; inOtherEnvironment?: true },
    status: number,
    asked: RawRequest,
  ) => {
    const key = counts.inOtherEnvironment ? tenant.otherServerKey : tenant.clientKey;
    kinds.push({
      endpoint: counts.as,
      environmentId: counts.inOtherEnvironment ? tenant.otherEnvironmentId : tenant.environmentId,
      evaluates: counts.for ?? [],
      status,
      asked: { ...asked, headers: { authorization: `Bearer ${key}`, ...asked.headers } },
    });
  };
  const get = (path: string, more: Record<string, string> = {}): RawRequest => ({
    method: "GET",
    path,
    headers: more,
  });
  const post = (path: string, body: string): RawRequest => ({
    method: "POST",
    path,
    body,
    headers: { "content-type": "application/json" },
  });
  const one = `/api/v1/sdk/evaluate?key=${flag.key}`;
  ask({ as: "flags", for: flags }, 200, get(flagsPath));
  ask({ as: "flags", for: flags, inOtherEnvironment: true }, 200, get(flagsPath));
  ask({ as: "flags", for: flags }, 304, get(flagsPath, { "if-none-match": etag }));
  ask({ as: "flags", for: flags }, 200, post(flagsPath, '{"user_id":"ada"}'));
  ask({ as: "flags" }, 400, get(flagsPath, { "x-user-context": "{" }));
  ask({ as: "flags" }, 400, post(flagsPath, "["));
  ask({ as: "flags" }, 413, post(flagsPath, JSON.stringify({ a: "a".repeat(tooLargeBytes) })));
  ask({ as: "evaluate", for: [flag] }, 200, get(one));
  ask({ as: "evaluate", for: [flag], inOtherEnvironment: true }, 200, post(one, "{}"));
  ask({ as: "evaluate" }, 404, get("/api/v1/sdk/evaluate?key=nothing"));
  ask({ as: "stream", for: flags }, 200, get("/api/v1/sdk/stream"));
  ask({ as: "ruleset", inOtherEnvironment: true }, 200, get(rulesetPath));
  ask({ as: "ruleset" }, 403, get(rulesetPath));
  ask(
    { as: "ruleset_stream", inOtherEnvironment: true },
    200,
    get(rulesetPath.replace("?", "/stream?")),
  );
  ask({ as: "ofrep_flags", for: flags }, 200, post(bulkPath, '{"context":{}}'));
  ask({ as: "ofrep_flag", for: [flag] }, 200, post(`${bulkPath}/${flag.key}`, '{"context":{}}'));
  ask({ as: "ofrep_flag" }, 404, post(`${bulkPath}/nothing`, '{"context":{}}'));
  ask({ as: "ofrep_stream" }, 200, get(stream.pathname + stream.search));
  ask({}, 401, get(flagsPath, { authorization: "Bearer nobody" }));
  ask({}, 204, {
    method: "OPTIONS",
    path: flagsPath,
    headers: { origin: "https://a.example", "access-control-request-method": "GET" },
  });
  return { kinds, sent: [bulk.sent, all.sent] };
}

/** Sends a request with the client key, and records which flags the response contains. */
export async function askOnce(
  { edge, tenant, flags }: { edge: Edge; tenant: Tenant; flags: readonly CreatedFlag[] },
  endpoint: UsageEndpoint,
  asked: RawRequest,
): Promise<RawAnswer & { sent: Sent }> {
  const startedMs = performance.now();
  const answer = await sendRaw(edge.url, {
    ...asked,
    headers: { authorization: `Bearer ${tenant.clientKey}`, ...asked.headers },
  });
  const seen = flags.filter(({ key }) => answer.status === 200 && answer.text.includes(`"${key}"`));
  const { environmentId } = tenant;
  const { status } = answer;
  const endedMs = performance.now();
  return {
    ...answer,
    sent: { endpoint, environmentId, evaluates: seen, status, startedMs, endedMs },
  };
}

/** Sends all kinds of requests in turn to every edge, until it is stopped. */
export function sendTraffic(options: {
  edges: readonly Edge[];
  kinds: readonly Kind[];
  pauseMs: number;
  /** Expected statuses in addition to that of the kind. */
  alsoExpected?: readonly number[];
}): Traffic {
  const { edges, kinds, pauseMs, alsoExpected = [] } = options;
  const sent: Sent[] = [];
  const complaints: string[] = [];
  let stopping = false;

  async function ask(edge: Edge, { asked, status: expected, ...kind }: Kind): Promise<void> {
    const startedMs = performance.now();
    const note = (status: number | undefined) =>
      sent.push({ ...kind, status, startedMs, endedMs: performance.now() });
    try {
      const { status } = await sendRaw(edge.url, asked);
      note(status);
      if (status !== expected && !alsoExpected.includes(status))
        complaints.push(`${edge.name}: ${asked.method} ${asked.path}: ${status}, not ${expected}`);
    } catch (error) {
      const reached = codeOf(error) !== "ECONNREFUSED";
      if (reached) note(undefined);
      else await delay(disconnectedMs);
    }
  }

  async function work(edge: Edge, first: number): Promise<void> {
    for (let turn = first; !stopping; turn += 1) {
      await ask(edge, kinds[turn % kinds.length] as Kind);
      await delay(pauseMs);
    }
  }

  const running = edges.flatMap((edge) =>
    Array.from({ length: workersPerEdge }, (_, index) =>
      work(edge, Math.floor((index * kinds.length) / workersPerEdge)),
    ),
  );
  const answered = () => sent.filter(({ status }) => status !== undefined).length;
  return {
    sent,
    complaints,
    async goesOn(more = enough) {
      const from = answered();
      await eventually(() => answered() >= from + more, {
        withinMs: goesOnWithinMs,
        because: `${more} more requests have a response`,
      });
    },
    async stop() {
      stopping = true;
      await Promise.all(running);
    },
  };
}

function codeOf(error: unknown): string | undefined {
  const { cause } = error as { cause?: { code?: string } };
  return cause?.code;
}
