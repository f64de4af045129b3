import {
  errorBody,
  ofrepEvaluateFlags,
  sdkPostEvaluate,
  sdkPostFlags,
  sdkPostValues,
} from "@halyard/contracts";
import { anyOriginHeaders } from "@halyard/http";
import { expressionOf, mapTargets, routeTable, type Target } from "./route-table.ts";

/**
 * Generates the configuration of HAProxy, which is the gateway of an installation. It contains no directive that is
 * newer than HAProxy 2.6. The services protect themselves, so the proxy only chooses a process, and tries another one if
 * it is unavailable.
 *
 * No write is sent twice: only a failed connection attempt is repeated, because nothing was sent. If a process breaks off
 * a write, the client gets 503, or its connection closes if it had served an earlier request. A `GET` goes to another
 * process once, if the connection breaks before the response. So does an evaluation by `POST`. Such a request to an edge
 * also does if the edge responds with 503, as one that starts does, or is silent for too long.
 */
export function haproxyConfiguration(servers: Readonly<Record<Target, Servers>>): string {
  const backends = mapTargets((target) =>
    backendSection({ name: target, target, servers: servers[target] }),
  );
  const ofrep = backendSection({
    ...{ name: ofrepName, target: "sdk-edge", servers: servers["sdk-edge"], isOfrep: true },
  });
  const addresses = Object.values(servers).filter((one) => "variable" in one);
  const presets = addresses.map(({ variable, preset }) => `  presetenv ${variable} ${preset}\n`);
  const sections = [
    head(presets.join("")),
    publicFrontend(),
    metricsFrontend,
    ...Object.values(backends),
    ofrep,
  ];
  return `${sections.join("\n\n")}\n`;
}

/** The processes of a service: their addresses, or the variable with a name that DNS resolves to all of them. */
type Servers =
  | { addresses: readonly string[] }
  | { variable: string; preset: string; maxProcesses: number };

/** Returns the processes that DNS finds by the name of their service, with a suffix. */
export const serversByName = (suffix = "") =>
  mapTargets(
    (target): Servers => ({
      variable: `${target.toUpperCase().replace("-", "_")}_ADDRESS`,
      preset: `${target}${suffix}:8080`,
      maxProcesses: target === "sdk-edge" ? 32 : 8,
    }),
  );

/** Returns the variables for the configuration. HAProxy separates the items of a list by spaces. */
export function haproxyVariables(
  given: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const { TRUSTED_PROXIES: proxies } = given;
  return proxies === undefined
    ? given
    : { ...given, TRUSTED_PROXIES: proxies.replaceAll(/[,\s]+/g, " ") };
}

const head = (addresses: string) => `# Generated from deploy/gateway/src/haproxy.ts.
global
  log stdout format raw local0
  presetenv HOST "*"
  presetenv PORT 8080
  presetenv TLS_HOST "\${HOST}"
  presetenv TLS_PORT 8443
  presetenv METRICS_HOST "\${HOST}"
  presetenv METRICS_PORT 9090
  # Each client connection needs two open files.
  presetenv MAX_CONNECTIONS 9000
  presetenv MAX_CONNECTIONS_PER_ADDRESS 4500
${addresses}  maxconn "\${MAX_CONNECTIONS}"
  # The headers of a request must fit: 16 KiB of context, and 5 KiB of others. Each open stream has one buffer.
  tune.bufsize 22528
  tune.maxrewrite 1024
  # A request of HTTP/2 costs as much as a connection, but only connections are counted.
  tune.h2.max-concurrent-streams 20
  # Open streams end after this time, so that their clients connect to another proxy.
  hard-stop-after 15s

resolvers dns
  parse-resolv-conf
  # Room for the addresses of all edges.
  accepted_payload_size 1232
  hold valid 1s
  # The known processes stay while DNS is unavailable.
  hold timeout 1h
  hold refused 1h
  hold other 1h

defaults all
  mode http
  log global
  # Errors and repeated requests. The id is that of the response and of the log of the service.
  option dontlog-normal
  log-format '{"service":"gateway","request_id":"%[var(txn.request_id),json(utf8s)]","client":"%ci","backend":"%b","server":"%s","status":%ST,"duration_ms":%Ta,"retries":"%rc","state":"%ts"}'
  option http-ignore-probes
  # When the client disconnects, the request to the service ends.
  option abortonclose
  timeout connect 1s
  timeout check 1s
  timeout queue 10s
  # Longer than the 60 s after which common load balancers close an idle connection.
  timeout client 72s
  timeout http-keep-alive 72s
  timeout http-request 20s
  retries 1
  option redispatch 1
  http-reuse always
  # A process that hangs gets no new requests after 2 to 3 s.
  default-server check inter 1s downinter 250ms fall 2 rise 1

${ownResponses({ name: "api" })}

${ownResponses({ name: "edge", isEdge: true })}

${ownResponses({ name: "ofrep", isEdge: true, isOfrep: true })}`;

function publicFrontend(): string {
  const named = routeTable.filter(({ pattern }) => pattern !== "/*");
  const rules = named.map(({ pattern, target }) => {
    const name = pattern.startsWith("/ofrep/") ? ofrepName : target;
    return `  use_backend ${name} if { ${matcherOf(pattern)} }`;
  });
  return `frontend public from all
  bind "\${HOST}:\${PORT}" v4v6
.if defined(TLS_CERTIFICATE_FILE)
  bind "\${TLS_HOST}:\${TLS_PORT}" v4v6 ssl crt "\${TLS_CERTIFICATE_FILE}" alpn h2,http/1.1
.endif
  acl from_trusted_proxy src -- "\${TRUSTED_PROXIES[*]}"
  acl via_trusted_proxy req.hdr_ip(X-Forwarded-For,-1) -- "\${TRUSTED_PROXIES[*]}"
  stick-table type ipv6 size 100k expire 2m store conn_cur
  tcp-request connection track-sc0 src,ipmask(32,64) unless from_trusted_proxy
  tcp-request connection reject if { sc0_conn_cur,sub("\${MAX_CONNECTIONS_PER_ADDRESS}") gt 0 }
  http-request set-var(txn.request_id) req.fhdr(X-Request-Id)
  http-request set-var(txn.request_id) uuid() unless { var(txn.request_id) -m reg ^[!-~]{1,128}$ }
  http-request set-header X-Request-Id %[var(txn.request_id)]
  http-request set-path %[path,regsub(^/+,/)] if { path_beg // }
  http-request del-header x-forwarded- -m beg unless from_trusted_proxy
  http-request del-header x-real-ip unless from_trusted_proxy
  http-request del-header forwarded unless from_trusted_proxy
  # The client as the nearest proxy that is not trusted has seen it. Services trust whole networks, where a client may be.
  # Without the prefix ::ffff: of IPv4 clients at \`::\`.
  http-request set-var(txn.client) src,ipmask(32,128)
  http-request set-var(txn.client) req.hdr_ip(X-Forwarded-For,-1) if from_trusted_proxy { req.hdr_ip(X-Forwarded-For,-1) -m found }
  http-request set-var(txn.client) req.hdr_ip(X-Forwarded-For,-2) if from_trusted_proxy via_trusted_proxy { req.hdr_ip(X-Forwarded-For,-2) -m found }
  http-request set-header X-Forwarded-For %[var(txn.client)]
${rules.join("\n")}
  http-after-response set-header Strict-Transport-Security "max-age=31536000" if { ssl_fc }
  default_backend dashboard`;
}

const metricsFrontend = `frontend metrics from all
  bind "\${METRICS_HOST}:\${METRICS_PORT}" v4v6
  http-request use-service prometheus-exporter if { path /metrics }
  http-request return status 503 content-type application/json string '{"ready":false}' if { path /readyz } { nbsrv(sdk-edge) eq 0 } { nbsrv(management) eq 0 } { nbsrv(dashboard) eq 0 }
  http-request return status 200 content-type application/json string '{"ready":true}' if { path /healthz /readyz }
  http-request return status 404`;

/** OFREP has its own form of errors, hence its own backend with the servers of `sdk-edge`. */
const ofrepName = "sdk-edge-ofrep";

function matcherOf(pattern: string): string {
  if (pattern.includes(":")) return `path_reg ${expressionOf(pattern)}`;
  return pattern.endsWith("*") ? `path_beg ${pattern.slice(0, -1)}` : `path ${pattern}`;
}

/**
 * Maximum silence of a service, in the units of HAProxy. Services with a database report after 20 s that it is unavailable.
 * Webhook dispatchers wait up to 30 s for the target of a test event. Edges respond from memory; a request waits there
 * for at most 10 s.
 */
const maxSilence: Readonly<Record<Target, string>> = {
  management: "25s",
  scheduler: "25s",
  "usage-metering": "25s",
  "webhook-dispatcher": "40s",
  "sdk-edge": "12s",
  dashboard: "10s",
};

type Backend = { name: string; target: Target; servers: Servers; isOfrep?: boolean };

function backendSection({ name, target, servers, isOfrep = false }: Backend): string {
  const isEdge = target === "sdk-edge";
  const flagPath = `${ofrepEvaluateFlags.path}/`;
  // The variable of other paths is empty.
  const keyMember = `'"key":"%[path,regsub(^${flagPath},),url_dec,json(utf8s)]",'`;
  return [
    `backend ${name} from ${isOfrep ? "ofrep" : isEdge ? "edge" : "api"}`,
    `  timeout server ${maxSilence[target]}`,
    // Four heartbeats of a stream.
    "  http-request set-timeout server 60s if { path_end /stream }",
    ...(isOfrep
      ? [`  http-request set-var-fmt(txn.key_member) ${keyMember} if { path_beg ${flagPath} }`]
      : []),
    `  retry-on conn-failure empty-response${isEdge ? " 503 response-timeout" : ""}`,
    `  http-request disable-l7-retry unless METH_GET${isEdge ? ` or ${isReadByPost}` : ""}`,
    "  option httpchk",
    "  http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host halyard",
    ...(target === "dashboard" ? [pageAtName] : []),
    "  balance leastconn",
    ...serverLines(servers),
  ].join("\n");
}

/**
 * Redirects page loads at 127.0.0.1 if browsers open the installation at `localhost`. Cookies and passkeys belong to the
 * name. Requests of programs stay, because not all of them follow redirects.
 */
const pageAtName = `.if defined(PUBLIC_URL)
  http-request redirect prefix "\${PUBLIC_URL}" code 307 if METH_GET { str("\${PUBLIC_URL}") -m reg ^https?://localhost(:[0-9]+)?$ } { req.hdr(Host) -m reg ^127\\.0\\.0\\.1(:[0-9]+)?$ } { req.fhdr(Accept) -m sub text/html }
.endif`;

function serverLines(servers: Servers): string[] {
  if ("addresses" in servers)
    return servers.addresses.map((address, index) => `  server process-${index + 1} ${address}`);
  const { variable, maxProcesses } = servers;
  return [
    `  server-template process- ${maxProcesses} "\${${variable}}" resolvers dns init-addr none`,
  ];
}

/** True for requests by POST that change nothing. */
const isReadByPost = `{ path ${sdkPostFlags.path} ${sdkPostValues.path} ${sdkPostEvaluate.path} } or { path_beg ${ofrepEvaluateFlags.path} }`;

type ResponseForm = { name: string; isEdge?: boolean; isOfrep?: boolean };

/** Returns a section of defaults with the responses of the proxy itself, in the form of those of the services. */
function ownResponses(form: ResponseForm): string {
  const away = "The service is temporarily unavailable; retry after 1 s.";
  const silent = "Timed out. A change may have been applied: check before retrying.";
  return [
    `defaults ${form.name} from all`,
    "  http-after-response set-header X-Request-Id %[var(txn.request_id)] if { var(txn.request_id) -m found }",
    "  http-after-response set-status 503 if { status 502 504 }",
    unavailableLine(502, away, form),
    unavailableLine(503, away, form),
    unavailableLine(504, silent, form),
  ].join("\n");
}

function unavailableLine(status: number, message: string, form: ResponseForm): string {
  const { isEdge = false, isOfrep = false } = form;
  const body = isOfrep
    ? `{%[var(txn.key_member)]"errorCode":"GENERAL","errorDetails":"${message}"}`
    : JSON.stringify(errorBody("SERVER_002", message));
  const headers = {
    "Retry-After": "1",
    "X-Content-Type-Options": "nosniff",
    ...(isEdge && anyOriginHeaders),
  };
  const lines = Object.entries(headers).map(([name, value]) => ` hdr ${name} '${value}'`);
  const type = "content-type 'application/json; charset=utf-8'";
  return `  http-error status ${status} ${type} lf-string '${body}'${lines.join("")}`;
}
