import type { Marks } from "../checks/traces.ts";
import { headerBytes, type RawRequest } from "./raw-request.ts";

/**
 * Requests with data about a user, in every valid and every invalid way. All user data contain a mark, by which tests
 * detect them elsewhere.
 */
export type MarkedRequest = {
  what: string;
  asked: RawRequest & { headers: Record<string, string> };
  /** The status that proves that the request was processed as far as intended. */
  status: number;
};

type MarkedKeys = { client: string; server: string; flag: string };

const flagsPath = "/api/v1/sdk/flags";
const evaluatePath = "/api/v1/sdk/evaluate";
const streamPath = "/api/v1/sdk/stream";
const ofrepPath = "/ofrep/v1/evaluate/flags";
const json = { "content-type": "application/json" };
const userHeadersLimitBytes = 16 * 1024;
const headersLimitBytes = 32 * 1024;
const bodyLimitBytes = 64 * 1024;
const managementBodyLimitBytes = 1024 * 1024;

function bearer(key: string): { authorization: string } {
  return { authorization: `Bearer ${key}` };
}

/** Returns a context with marks in names and values: beyond ASCII, in lists, and as a number. */
export function markedContext(marks: Marks): Record<string, unknown> {
  return {
    user_id: `${marks.next()}-Zoë`,
    [marks.next()]: marks.next(),
    [`${marks.next()}-é日本`]: `ö${marks.next()}\u{1f6a2}"\\`,
    email: `${marks.next()}@example.com`,
    groups: [marks.next(), marks.next()],
    phone: marks.digits,
  };
}

export function markedRequests(marks: Marks, keys: MarkedKeys): MarkedRequest[] {
  return [
    ...rightHeaders(marks, keys),
    ...rightBodies(marks, keys),
    ...wrongHeaders(marks, keys),
    ...wrongBodies(marks, keys),
    ...wrongQueries(marks, keys),
    ...notAdmitted(marks, keys),
  ];
}

/** Returns requests that explain a flag to a person, who tries it with a user. The path is that of the flag's state. */
export function markedExplanations(
  marks: Marks,
  keys: Omit<MarkedKeys, "flag">,
  statePath: string,
): MarkedRequest[] {
  const target = { path: `${statePath}/explain`, key: keys.server };
  const user = () => ({
    id: marks.next(),
    attributes: markedContext(marks),
    [marks.next()]: marks.next(),
  });
  const body = (more: object = {}) => JSON.stringify({ user: user(), ...more });
  const everyWay = Object.assign({}, ...saidInHeaders(marks).map(([, headers]) => headers));
  const sent: [what: string, sent: Partial<RawRequest>, status: number][] = [
    ["a user", { body: body() }, 200],
    ["a user, a context in every header", { body: body(), headers: everyWay }, 200],
    ["a user with other settings", { body: body({ state: { enabled: false } }) }, 200],
    ["a user with invalid settings", { body: body({ state: { rollout_percentage: 101 } }) }, 400],
    ["an unknown member", { body: body({ users: markedContext(marks) }) }, 400],
    ["a text as user", { body: JSON.stringify({ user: marks.next() }) }, 400],
    [
      "an object in a user",
      { body: body({ user: { team: { [marks.next()]: marks.next() } } }) },
      400,
    ],
    ["an id that is a list", { body: body({ user: { id: [marks.next()] } }) }, 400],
    ["broken JSON", { body: body().slice(0, -2) }, 400],
    ["too much", { body: body({ a: marks.next().repeat(managementBodyLimitBytes / 16) }) }, 413],
    ["another content type", { body: body(), headers: { "content-type": "text/plain" } }, 415],
    ["a client key", { body: body(), headers: bearer(keys.client) }, 403],
    ["an unknown query parameter", { body: body(), path: `${target.path}?a=${marks.next()}` }, 400],
  ];
  return sent.map(([what, request, status]) => ({ ...post(target, what, request), status }));
}

/** Returns every way to send a context in headers, each with its own marks. */
function saidInHeaders(marks: Marks): [what: string, headers: Record<string, string>][] {
  const context = () => JSON.stringify(markedContext(marks));
  const list = () => `${marks.next()}=${marks.next()},country=${marks.next()}ß`;
  return [
    ["X-User-Context", { "x-user-context": headerBytes(context()) }],
    ["X-User-Context in base64", { "x-user-context": Buffer.from(context()).toString("base64") }],
    [
      "X-User-Context in base64url",
      { "x-user-context": Buffer.from(context()).toString("base64url") },
    ],
    ["X-User-ID", { "x-user-id": headerBytes(`${marks.next()}-Zoë`) }],
    ["X-User-Email", { "x-user-email": `${marks.next()}@example.com` }],
    ["X-User-Attributes", { "x-user-attributes": headerBytes(list()) }],
    ["an unknown header", { "x-user-plan": marks.next() }],
  ];
}

function rightHeaders(marks: Marks, keys: MarkedKeys): MarkedRequest[] {
  const paths: [path: string, key: string][] = [
    [flagsPath, keys.client],
    [`${evaluatePath}?key=${keys.flag}`, keys.client],
    [`${evaluatePath}?key=${keys.flag}&explain=true`, keys.server],
    [streamPath, keys.client],
  ];
  return paths.flatMap(([path, key]) => {
    const encoded = encodeURIComponent(`${marks.next()} Zoë`);
    const also = (query: string) => `${path}${path.includes("?") ? "&" : "?"}${query}`;
    const get = (what: string, target: string, headers: Record<string, string>): MarkedRequest => ({
      what: `${what}, GET ${path}`,
      asked: { method: "GET", path: target, headers: { ...bearer(key), ...headers } },
      status: 200,
    });
    return [
      ...saidInHeaders(marks).map(([what, headers]) => get(what, path, headers)),
      get("user_id in the query", also(`user_id=${encoded}`), {}),
      get("user_id in the query, all encoded", also(`user_id=${percentEncoded(marks.next())}`), {}),
      get("unknown query parameters", also(`${marks.next()}=${marks.next()}`), {}),
    ];
  });
}

function percentEncoded(text: string): string {
  return [...Buffer.from(text)].map((byte) => `%${byte.toString(16)}`).join("");
}

type Post = { path: string; key: string; wrap: (context: object) => unknown };

function posts(marks: Marks, keys: MarkedKeys): Post[] {
  const asItIs = (context: object) => context;
  const asUser = (context: object) => ({
    user: { id: marks.next(), attributes: context, [marks.next()]: marks.next() },
    [marks.next()]: marks.next(),
  });
  const asOfrep = (context: object) => ({ context: { targetingKey: marks.next(), ...context } });
  return [
    { path: flagsPath, key: keys.client, wrap: asItIs },
    { path: flagsPath, key: keys.client, wrap: asUser },
    { path: `${evaluatePath}?key=${keys.flag}`, key: keys.client, wrap: asItIs },
    { path: `${evaluatePath}?key=${keys.flag}&explain=true`, key: keys.server, wrap: asUser },
    { path: `${ofrepPath}/${keys.flag}`, key: keys.client, wrap: asOfrep },
    { path: ofrepPath, key: keys.client, wrap: asOfrep },
  ];
}

function post({ path, key }: Omit<Post, "wrap">, what: string, sent: Partial<RawRequest>) {
  return {
    what: `${what}, POST ${path}`,
    asked: {
      method: "POST",
      path,
      ...sent,
      headers: { ...bearer(key), ...json, ...sent.headers } as Record<string, string>,
    },
  };
}

function rightBodies(marks: Marks, keys: MarkedKeys): MarkedRequest[] {
  return posts(marks, keys).flatMap((target) => {
    const body = () => JSON.stringify(target.wrap(markedContext(marks)));
    const everyWay = Object.assign({}, ...saidInHeaders(marks).map(([, headers]) => headers));
    const withApiKey = { ...post(target, "the key in X-API-Key", { body: body() }), status: 200 };
    const { authorization: _, ...headers } = withApiKey.asked.headers;
    withApiKey.asked.headers = { ...headers, "x-api-key": target.key };
    return [
      { ...post(target, "a body", { body: body() }), status: 200 },
      {
        ...post(target, "a body and every header", { body: body(), headers: everyWay }),
        status: 200,
      },
      ...(target.path.startsWith(ofrepPath) ? [withApiKey] : []),
    ];
  });
}

function wrongHeaders(marks: Marks, keys: MarkedKeys): MarkedRequest[] {
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const notUtf8 = (text: string) => `${text}\u00e9\u00ff`;
  const wrong: [what: string, headers: Record<string, string>, status?: number][] = [
    ["broken JSON", { "x-user-context": `{"${marks.next()}": ${marks.next()}` }],
    ["an array", { "x-user-context": base64(`["${marks.next()}"]`) }],
    ["a text", { "x-user-context": `"${marks.next()}"` }],
    ["invalid base64", { "x-user-context": `${base64(marks.next())}!${marks.next()}` }],
    ["base64 of invalid JSON", { "x-user-context": base64(`{'${marks.next()}'`) }],
    [
      "base64 of invalid UTF-8",
      { "x-user-context": Buffer.from(`{"a":"${marks.next()}é"}`, "latin1").toString("base64") },
    ],
    ["invalid UTF-8", { "x-user-context": notUtf8(`{"a":"${marks.next()}`) }],
    ["a nested object", { "x-user-context": `{"${marks.next()}":{"a":"${marks.next()}"}}` }],
    ["an object in a list", { "x-user-context": `{"${marks.next()}":[{"${marks.next()}":1}]}` }],
    ["an id that is a list", { "x-user-context": `{"id":["${marks.next()}"]}` }],
    ["a number beyond a double", { "x-user-context": `{"${marks.next()}":1e400}` }],
    ["an X-User-ID with invalid UTF-8", { "x-user-id": notUtf8(marks.next()) }],
    ["an X-User-Email with invalid UTF-8", { "x-user-email": notUtf8(marks.next()) }],
    ["an attribute without a value", { "x-user-attributes": `${marks.next()},a=b` }],
    ["an attribute without a name", { "x-user-attributes": `=${marks.next()}` }],
    ["too much", { "x-user-context": filled(marks, userHeadersLimitBytes) }, 413],
    ["far too much", { "x-user-id": filled(marks, headersLimitBytes) }, 413],
  ];
  const paths = [flagsPath, `${evaluatePath}?key=${keys.flag}`, streamPath];
  return paths.flatMap((path) =>
    wrong.map(([what, headers, status = 400]) => ({
      what: `${what}, GET ${path}`,
      asked: { method: "GET", path, headers: { ...bearer(keys.client), ...headers } },
      status,
    })),
  );
}

/** Returns marks that exceed a size limit. */
function filled(marks: Marks, limitBytes: number): string {
  let text = "";
  while (text.length <= limitBytes) text += marks.next();
  return text;
}

function wrongBodies(marks: Marks, keys: MarkedKeys): MarkedRequest[] {
  return posts(marks, keys).flatMap((target) => {
    const isOfrep = target.path.startsWith(ofrepPath);
    const wrap = (context: object) => JSON.stringify(target.wrap(context));
    const right = wrap(markedContext(marks));
    const wrong: [what: string, sent: Partial<RawRequest>, status?: number][] = [
      ["broken JSON", { body: `{"${marks.next()}": ${marks.next()}` }],
      ["JSON that is cut off", { body: right.slice(0, -2) }],
      ["a text", { body: `"${marks.next()}"` }],
      ["a list", { body: `["${marks.next()}"]` }],
      ["invalid UTF-8", { body: Buffer.from(`{"a":"${marks.next()}é"}`, "latin1") }],
      [
        "an id that is an object",
        { body: wrap({ id: { [marks.next()]: marks.next() } }) },
        isOfrep ? 200 : 400,
      ],
      [
        "an id that is neither text nor number",
        { body: isOfrep ? wrap({ targetingKey: [marks.next()] }) : wrap({ id: [marks.next()] }) },
      ],
      [
        "a nested object",
        { body: wrap({ [marks.next()]: { [marks.next()]: marks.next() } }) },
        isOfrep ? 200 : 400,
      ],
      ["too much", { body: wrap({ a: filled(marks, bodyLimitBytes) }) }, 413],
      ["another content type", { body: right, headers: { "content-type": "text/plain" } }, 415],
      [
        "another charset",
        { body: right, headers: { "content-type": "application/json; charset=latin1" } },
        415,
      ],
      ["a compressed body", { body: right, headers: { "content-encoding": "gzip" } }, 415],
    ];
    return wrong.map(([what, sent, status = 400]) => ({ ...post(target, what, sent), status }));
  });
}

function wrongQueries(marks: Marks, keys: MarkedKeys): MarkedRequest[] {
  const get = (what: string, path: string, status: number): MarkedRequest => ({
    what: `${what}, GET ${path.split("?")[0]}`,
    asked: { method: "GET", path, headers: bearer(keys.client) },
    status,
  });
  const twice = () => `user_id=${marks.next()}&user_id=${marks.next()}`;
  const notUtf8 = () => `user_id=${marks.next()}%ff${marks.next()}`;
  return [flagsPath, evaluatePath, streamPath].flatMap((path) => {
    const key = path === evaluatePath ? `key=${keys.flag}&` : "";
    return [
      get("two ids", `${path}?${key}${twice()}`, 400),
      get("invalid UTF-8", `${path}?${key}${notUtf8()}`, 400),
    ];
  });
}

function notAdmitted(marks: Marks, keys: MarkedKeys): MarkedRequest[] {
  const said = () => ({ "x-user-context": JSON.stringify({ [marks.next()]: marks.next() }) });
  const query = () => `user_id=${marks.next()}`;
  const get = (what: string, path: string, headers: object, status: number): MarkedRequest => ({
    what,
    asked: { method: "GET", path: `${path}${query()}`, headers: { ...said(), ...headers } },
    status,
  });
  const badKey = bearer(`hc_${"a".repeat(16)}_${"A".repeat(43)}`);
  const paths = [`${flagsPath}?`, `${evaluatePath}?key=${keys.flag}&`, `${streamPath}?`];
  const unwanted = posts(marks, keys).map((target) => {
    const body = JSON.stringify(target.wrap(markedContext(marks)));
    return {
      ...post(target, "a body with an unknown key", { body, headers: badKey }),
      status: 401,
    };
  });
  return [
    ...paths.map((path) => get(`no key, ${path}`, path, {}, 401)),
    ...paths.map((path) => get(`an unknown key, ${path}`, path, badKey, 401)),
    ...unwanted,
    get("an unknown flag", `${evaluatePath}?key=nothing&`, bearer(keys.client), 404),
    get("no flag", `${evaluatePath}?`, bearer(keys.client), 400),
    get(
      "a client key with explain",
      `${evaluatePath}?key=${keys.flag}&explain=true&`,
      bearer(keys.client),
      403,
    ),
    get("an unknown path", "/api/v1/sdk/nothing?", bearer(keys.client), 404),
    get("a path without a service", "/nothing?", bearer(keys.client), 404),
    get("an unknown token", "/ofrep/v1/stream?token=nonsense&", {}, 401),
    {
      what: "an unknown flag by OFREP",
      asked: {
        method: "POST",
        path: `${ofrepPath}/nothing`,
        headers: { ...bearer(keys.client), ...json },
        body: JSON.stringify({ context: markedContext(marks) }),
      },
      status: 404,
    },
    {
      what: "an unknown method",
      asked: {
        method: "PUT",
        path: `${flagsPath}?${query()}`,
        headers: { ...bearer(keys.client), ...said(), ...json },
        body: JSON.stringify(markedContext(marks)),
      },
      status: 404,
    },
  ];
}
