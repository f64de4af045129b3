import { type RouteContract, routes } from "@halyard/contracts";
import type { Asked } from "./http-exchange.ts";
import type { Ids } from "./ordinary-use.ts";
import type { Transcript } from "./transcript.ts";

type AskedAs = Asked & { as?: string | undefined };

const unknownId = "01890000-0000-7000-8000-000000000000";

/** Sends every route all kinds of invalid requests that do not depend on the purpose of the route. */
export async function rejectEverywhere({ group }: Transcript, ids: Ids): Promise<void> {
  const asked = routes.map((route) => ({ route, right: rightRequest(route, ids) }));
  const everywhere = async (title: string, spoil: (each: Each) => AskedAs | undefined) =>
    group(
      title,
      asked.map(spoil).filter((each) => each !== undefined),
    );

  await everywhere("without a key", ({ right }) => ({ ...right, as: undefined }));
  await everywhere("with a key that is none", ({ right }) => ({
    ...right,
    as: undefined,
    headers: { Authorization: "Bearer hs_no_key" },
  }));
  await everywhere("with a revoked key", ({ right }) => ({ ...right, as: "revoked" }));
  await everywhere("with a client key", ({ route, right }) =>
    [
      ...["server_key", "server_or_reader_key", "operator_or_server_key"],
      ...["operator", "operator_or_session", "session"],
    ].includes(route.access)
      ? { ...right, as: "client" }
      : undefined,
  );
  await everywhere("with a server key where the operator is needed", ({ route, right }) =>
    right.as === "operator" && route.access !== "operator_or_server_key"
      ? { ...right, as: "server" }
      : undefined,
  );
  await everywhere("with the operator's token where a key is needed", ({ route, right }) =>
    route.access.startsWith("operator") ? undefined : { ...right, as: "operator" },
  );
  await everywhere("with another tenant's key", ({ route, right }) =>
    /^server_/.test(route.access) ? { ...right, as: "foreign" } : undefined,
  );
  await everywhere("with malformed ids", ({ route, right }) =>
    route.path.includes(":") ? { ...right, path: pathWith(route, () => "no-id") } : undefined,
  );
  await everywhere("with unknown ids", ({ route, right }) =>
    route.path.includes(":") ? { ...right, path: pathWith(route, () => unknownId) } : undefined,
  );
  await everywhere("with an unknown query parameter", ({ right }) => ({
    ...right,
    path: `${right.path}${right.path.includes("?") ? "&" : "?"}unknown=1`,
  }));
  const bodies: readonly [string, unknown, Record<string, string>?][] = [
    ["a body that is cut off", "{"],
    ["a body that is a list", []],
    ["a body with unknown members", { unknown: 1 }],
    ["an empty body", ""],
    ["a body of text", "text", { "Content-Type": "text/plain" }],
    ["a JSON patch", "[]", { "Content-Type": "application/json-patch+json" }],
    ["a body that is too large", `{"name":"${"x".repeat(1024 * 1024 + 1)}"}`],
  ];
  for (const [what, body, headers = {}] of bodies)
    await everywhere(`with ${what}`, ({ route, right }) =>
      route.method === "GET" || route.method === "DELETE" ? undefined : { ...right, body, headers },
    );
  await everywhere("HEAD", ({ route, right }) =>
    route.method === "GET" ? { ...right, method: "HEAD" } : undefined,
  );
  await everywhere("a method that the path does not have", ({ right }) => ({
    ...right,
    method: "TRACE",
    body: undefined,
  }));
  await everywhere("a preflight", ({ right, route }) => ({
    method: "OPTIONS",
    path: right.path,
    headers: {
      Origin: "https://shop.example",
      "Access-Control-Request-Method": route.method,
      "Access-Control-Request-Headers": "authorization,content-type",
    },
  }));
  await everywhere("with an origin and a wrong key", ({ right }) => ({
    ...right,
    as: undefined,
    headers: { Origin: "https://shop.example", Authorization: "Bearer no" },
  }));
}

type Each = { route: RouteContract; right: AskedAs };

/** Returns a request with existing ids, which callers make invalid. Its body is never valid. */
function rightRequest(route: RouteContract, ids: Ids): AskedAs {
  const body = route.body === undefined || route.bodyOptional ? undefined : {};
  const as = ["operator", "operator_or_session"].includes(route.access) ? "operator" : "server";
  const query = route.path.endsWith("/evaluate") ? "?key=checkout" : "";
  return { as, method: route.method, path: pathWith(route, (name) => ids[name]) + query, body };
}

function pathWith(route: RouteContract, idOf: (name: string) => string | undefined): string {
  return route.path.replaceAll(/:(\w+)/g, (_, name: string) => {
    const value = idOf(name);
    if (value === undefined) throw new Error(`${route.path}: no value for ${name}`);
    return value;
  });
}
