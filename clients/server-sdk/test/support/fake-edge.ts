import type { FlagRules } from "../../src/rules/parse-rules.ts";

/** Settings of a flag, as a test gives them. */
export type Settings = Partial<Omit<FlagRules, "key" | "version">>;

export type EdgeRequest = {
  method: string;
  path: string;
  headers: Readonly<Record<string, string | undefined>>;
  body: string;
};

export type Reply = {
  head(status: number, headers: Record<string, string>): void;
  write(text: string | Uint8Array): void;
  end(text?: string): void;
  destroy(): void;
  onClose(callback: () => void): void;
};

type Route = "stream" | "poll" | "usage" | "list";

export type Behavior =
  | "normal"
  /** Responds with a status. */
  | { status: number; headers?: Record<string, string>; body?: string }
  /** Accepts the request and never responds, as a network that drops packets. */
  | "hang"
  /** Sends the head of a response and nothing else, as a proxy that buffers. */
  | "withhold"
  /** Closes the connection. */
  | "reset"
  | ((request: EdgeRequest, reply: Reply) => void);

/** A part of the network on which a fake edge serves. */
export type FakeEdge = {
  /** Adds or changes a flag. `undefined` removes it. Open streams receive a delta. */
  change(key: string, settings: Settings | undefined): void;
  /** Adds or changes an audience. `undefined` removes it. Open streams receive a delta. */
  changeAudience(key: string, audience: object | undefined): void;
  /** Applies the changes of a function in one step, so that open streams receive one delta. */
  inOneStep(change: () => void): void;
  /** Chunks of lists by their SHA-256. Others are not found. */
  readonly chunks: Map<string, Uint8Array>;
  /** The current tag, with its quotes. */
  readonly tag: string;
  /** The values of `enabled`, by key. */
  readonly values: Readonly<Record<string, boolean>>;
  behave(route: Route, behavior: Behavior): void;
  readonly requests: EdgeRequest[];
  /** Requests of one route. */
  of(route: Route): EdgeRequest[];
  readonly openStreams: number;
  /** Writes to all open streams. */
  write(text: string | Uint8Array): void;
  heartbeat(): void;
  cutStreams(): void;
  /** Sends nothing more to the open streams, without closing them, as a network that drops packets. */
  abandonStreams(): void;
  /** From now on, changes do not reach this edge: it serves the flags that it has. */
  isolate(): void;
  rejoin(): void;
  /** Makes the tags of the past unknown, as a restart does. */
  forgetTags(): void;
  handle(request: EdgeRequest, reply: Reply): void;
};

type Version = {
  tag: string;
  flags: ReadonlyMap<string, Record<string, unknown>>;
  audiences: ReadonlyMap<string, object>;
};

export const projectId = "0199a000-0000-7000-8000-0000000000aa";
export const environmentId = "0199a000-0000-7000-8000-000000000001";

export function createFakeEdge(): FakeEdge {
  const streams = new Set<Reply>();
  const behaviors = new Map<Route, Behavior>();
  const requests: EdgeRequest[] = [];
  let versions: Version[] = [{ tag: '"0-empty"', flags: new Map(), audiences: new Map() }];
  let served = versions[0] as Version;
  let count = 0;
  let isIsolated = false;
  let isHeldBack = false;
  const chunks = new Map<string, Uint8Array>();

  function latest(): Version {
    return versions.at(-1) as Version;
  }

  function known(tag: string | undefined): Version | undefined {
    const upTo = versions.indexOf(served);
    return versions.find((version, index) => version.tag === tag && index <= upTo);
  }

  function serve(version: Version): void {
    const event = delta(served, version);
    served = version;
    for (const stream of streams) stream.write(event);
  }

  function openStream(request: EdgeRequest, reply: Reply): void {
    const tag = request.headers["last-event-id"];
    const from = known(tag);
    if (isOlderThan(tag, from)) {
      reject(reply, 503, { "retry-after": "1" });
      return;
    }
    reply.head(200, { "content-type": "text/event-stream" });
    reply.write("retry: 3000\n\n");
    if (from === undefined) reply.write(full(served));
    else if (from !== served) reply.write(delta(from, served));
    reply.write(heartbeat);
    streams.add(reply);
    reply.onClose(() => streams.delete(reply));
  }

  /** Returns whether a client has flags that this edge may not have received yet. */
  function isOlderThan(tag: string | undefined, version: Version | undefined): boolean {
    return isIsolated && tag !== undefined && version === undefined;
  }

  function poll(request: EdgeRequest, reply: Reply): void {
    const tag = request.headers["if-none-match"];
    if (isOlderThan(tag, known(tag))) {
      reject(reply, 503, { "retry-after": "1" });
      return;
    }
    reply.head(tag === served.tag ? 304 : 200, { etag: served.tag });
    reply.end(tag === served.tag ? undefined : bodyOf(served));
  }

  function respond(route: Route, request: EdgeRequest, reply: Reply): void {
    const behavior = behaviors.get(route) ?? "normal";
    if (typeof behavior === "function") behavior(request, reply);
    else if (behavior === "reset") reply.destroy();
    else if (behavior === "withhold") reply.head(200, { "content-type": "text/event-stream" });
    else if (typeof behavior === "object")
      reject(reply, behavior.status, behavior.headers, behavior.body);
    else if (behavior === "normal") respondNormally(route, request, reply);
  }

  function respondNormally(route: Route, request: EdgeRequest, reply: Reply): void {
    if (route === "stream") openStream(request, reply);
    else if (route === "poll") poll(request, reply);
    else if (route === "list") sendChunk(request, reply);
    else reject(reply, 202, {}, '{"accepted":true}');
  }

  function sendChunk({ path }: EdgeRequest, reply: Reply): void {
    const chunk = chunks.get(path.slice(path.lastIndexOf("/") + 1));
    if (chunk === undefined) {
      reject(reply, 404, {});
      return;
    }
    reply.head(200, { "content-type": "application/octet-stream" });
    reply.write(chunk);
    reply.end();
  }

  function publish(changed: Partial<Version>): void {
    count += 1;
    versions.push({ ...latest(), ...changed, tag: `"${count.toString(36)}-tag"` });
    versions = versions.slice(-1_000);
    if (!isIsolated && !isHeldBack) serve(latest());
  }

  return {
    change(key, settings) {
      const flags = new Map(latest().flags);
      if (settings === undefined) flags.delete(key);
      else flags.set(key, { ...defaults, ...settings, version: count + 1 });
      publish({ flags });
    },
    changeAudience(key, audience) {
      const audiences = new Map(latest().audiences);
      if (audience === undefined) audiences.delete(key);
      else audiences.set(key, audience);
      publish({ audiences });
    },
    inOneStep(change) {
      isHeldBack = true;
      change();
      isHeldBack = false;
      serve(latest());
    },
    chunks,
    get tag() {
      return served.tag;
    },
    get values() {
      const entries = [...latest().flags].map(([key, { enabled }]) => [key, enabled] as const);
      return Object.fromEntries(entries) as Record<string, boolean>;
    },
    behave: (route, behavior) => void behaviors.set(route, behavior),
    requests,
    of: (route) => requests.filter(({ path }) => paths[route].test(path)),
    get openStreams() {
      return streams.size;
    },
    write(text) {
      for (const stream of streams) stream.write(text);
    },
    heartbeat() {
      for (const stream of streams) stream.write(heartbeat);
    },
    cutStreams() {
      for (const stream of [...streams]) stream.destroy();
      streams.clear();
    },
    abandonStreams: () => streams.clear(),
    isolate() {
      isIsolated = true;
    },
    rejoin() {
      isIsolated = false;
      serve(latest());
    },
    forgetTags() {
      versions = [latest()];
      served = latest();
    },
    handle(request, reply) {
      requests.push(request);
      const route = (Object.keys(paths) as Route[]).find((name) => paths[name].test(request.path));
      if (route === undefined) reject(reply, 404, {});
      else respond(route, request, reply);
    },
  };
}

const defaults = { enabled: true, rollout_percentage: 100, targeting_rules: [] };
const paths: Record<Route, RegExp> = {
  stream: /\/api\/v1\/sdk\/ruleset\/stream\?format=2$/,
  poll: /\/api\/v1\/sdk\/ruleset\?format=2$/,
  usage: /\/api\/v1\/sdk\/usage$/,
  list: /\/api\/v1\/sdk\/lists\/[0-9a-f]{64}$/,
};
const heartbeat = 'event: heartbeat\ndata: {"timestamp":1}\n\n';

function reject(
  reply: Reply,
  status: number,
  headers: Record<string, string> = {},
  body = "",
): void {
  reply.head(status, headers);
  reply.end(body);
}

function bodyOf({ flags, audiences }: Version): string {
  return JSON.stringify({
    format: 2,
    project_id: projectId,
    environment_id: environmentId,
    flags: Object.fromEntries(flags),
    ...(audiences.size > 0 && { audiences: Object.fromEntries(audiences) }),
  });
}

function full(version: Version): string {
  return event(version.tag, { ...JSON.parse(bodyOf(version)), full: true });
}

function delta(from: Version, to: Version): string {
  const flags = changesOf(from.flags, to.flags);
  const audiences = changesOf(from.audiences, to.audiences);
  return event(to.tag, {
    ...{ format: 2, environment_id: environmentId, flags: flags.changed },
    ...(flags.removed.length > 0 && { removed: flags.removed }),
    ...(Object.keys(audiences.changed).length > 0 && { audiences: audiences.changed }),
    ...(audiences.removed.length > 0 && { removed_audiences: audiences.removed }),
  });
}

function changesOf<T>(from: ReadonlyMap<string, T>, to: ReadonlyMap<string, T>) {
  const changed = [...to].filter(([key, value]) => from.get(key) !== value);
  const removed = [...from.keys()].filter((key) => !to.has(key));
  return { changed: Object.fromEntries(changed), removed };
}

/** Formats a `ruleset` event. */
export function event(tag: string, data: unknown): string {
  return `event: ruleset\nid: ${tag}\ndata: ${JSON.stringify(data)}\n\n`;
}
