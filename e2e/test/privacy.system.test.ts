import { readdirSync } from "node:fs";
import { snapshotBucket } from "@halyard/contracts";
import {
  type Collector,
  call,
  type EventStream,
  eventually,
  openEventStream,
  type Receiver,
  type ServiceProcess,
  startCollector,
  startReceiver,
} from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  type CapturedTraffic,
  captureTraffic,
  databaseRows,
  filesWritten,
  streamMessages,
} from "../src/checks/left-behind.ts";
import { createMarks, findTraces, needlesFor, type Source } from "../src/checks/traces.ts";
import { type Edge, type Settings, type System, startSystem } from "../src/system/system.ts";
import { createTenant, must, type Tenant } from "../src/system/tenancy.ts";
import {
  type MarkedRequest,
  markedContext,
  markedExplanations,
  markedRequests,
} from "../src/traffic/marked-requests.ts";
import {
  exchangeBytes,
  headerBytes,
  type RawRequest,
  sendAndLeave,
  sendRaw,
} from "../src/traffic/raw-request.ts";

/**
 * User data must not be stored or logged. Everything that a request contains about a user, valid or invalid, is used
 * for the response only. Every process logs at the lowest level, and may write to no file except the edge's disk cache.
 * At the end, all data that the system leaves are searched for user data. The same search must find data that were
 * planted on purpose.
 */
const flagKey = "checkout";
const atOnce = 8;
/** Minimum number of counted requests. Most requests are accepted, and thereby counted. */
const leastCounted = 300;
/** Length of the secret at the end of a key. The secret may contain the separator, so the key cannot be split there. */
const secretLength = 43;

const marks = createMarks();
const planted = createMarks();
/** Entries of the list of an audience. */
const members = createMarks();
const plant = planted.next();
const webhookSecret = createMarks().next();
/** Credentials, which are searched for together with the marks. */
const secrets: string[] = [webhookSecret];

describe("given a system that logs everything, and requests with marked users", () => {
  let collector: Collector;
  let receiver: Receiver;
  let system: System;
  let gateway: ServiceProcess;
  let edge: Edge;
  let captured: CapturedTraffic;
  let tenant: Tenant;
  let flagId: string;
  let fingerprintKey: string;
  const exits: (number | NodeJS.Signals)[] = [];
  const complaints: string[] = [];
  const answers: Source[] = [];
  const sources = new Map<string, Source[]>();

  beforeAll(async () => {
    collector = await startCollector();
    receiver = await startReceiver();
    system = await startSystem({
      managements: 1,
      schedulers: 1,
      dispatchers: 1,
      meterings: 1,
      edges: 1,
      postgres: "own",
      settings: traceSettings,
    });
    gateway = await system.startGateway();
    [edge] = system.edges as [Edge];
    captured = await captureTraffic(system.nats.url);
    system.endsWithSystem(captured.close);
    const sinceMs = Date.now();
    await prepare();
    await listUsers();
    await askEverything();
    await explain();
    await schedule();
    await deliver();
    await count();
    await readMetrics();
    await stopInOrder();
    await collectWhatIsLeft(sinceMs);
  });
  afterAll(async () => {
    await system?.close();
    await receiver?.close();
    await collector?.close();
  });

  /** Lets every process log everything, and send its traces to the collector. */
  function traceSettings(directory: string): Settings {
    const everywhere = {
      LOG_LEVEL: "trace",
      TMPDIR: directory,
      HOME: directory,
      ...collector.environment,
      OTEL_TRACES_EXPORTER: "otlp",
      OTEL_LOGS_EXPORTER: "otlp",
      OTEL_METRICS_EXPORTER: "otlp",
    };
    const readOnly = "--permission --allow-fs-read=*";
    return {
      management: { ...everywhere, NODE_OPTIONS: readOnly },
      scheduler: { ...everywhere, NODE_OPTIONS: readOnly },
      "webhook-dispatcher": { ...everywhere, NODE_OPTIONS: readOnly },
      "usage-metering": { ...everywhere, NODE_OPTIONS: readOnly },
      gateway: { ...everywhere, NODE_OPTIONS: readOnly },
      "sdk-edge": {
        ...everywhere,
        NODE_OPTIONS: `${readOnly} --allow-fs-write=${directory}`,
        STREAM_TOKEN_SECRET: "a secret that all edges share, for the tests only",
      },
    };
  }

  const addresses = () => [gateway.url, edge.url];

  /** Creates a flag whose rules use the marked attributes, with a plant in its rules. */
  async function prepare(): Promise<void> {
    tenant = await createTenant(gateway.url, { name: "Private" });
    secrets.push(...[tenant.clientKey, tenant.serverKey].map((key) => key.slice(-secretLength)));
    const conditions = (attribute: string, operator: string, value: unknown) => [
      { attribute, operator, value },
    ];
    const body = {
      key: flagKey,
      name: "Checkout",
      enabled: true,
      targeting_rules: [
        { conditions: conditions(plant, "equals", plant) },
        { conditions: conditions("email", "matches_regex", "^nobody@") },
        { conditions: conditions("country", "in", "DE,AT") },
        { conditions: conditions("phone", "lt", 5) },
        { conditions: [], rollout_percentage: 50 },
      ],
    };
    const flag = await must(`${gateway.url}/api/v1/flags`, {
      method: "POST",
      key: tenant.serverKey,
      headers: { "x-request-id": plant },
      body,
    });
    flagId = flag.id;
    await eventually(async () => {
      const { body: flags } = await call(`${edge.url}/api/v1/sdk/flags`, { key: tenant.clientKey });
      return flagKey in flags.flags;
    });
    await system.sql`select ${plant}::text::integer`.catch(() => undefined);
  }

  /** Uploads, changes and reads the list of an audience that a flag uses, in valid and invalid ways. */
  async function listUsers(): Promise<void> {
    const path = "/api/v1/audiences/beta/list";
    const post = (what: string, status: number, at: string, body: object) =>
      manage(what, status, { method: "POST", path: at, body: JSON.stringify(body) });
    const patch = (what: string, status: number, body: object) =>
      manage(what, status, { method: "PATCH", path, body: JSON.stringify(body) });
    const upload = (what: string, status: number, body: string) =>
      ask(gateway.url, {
        ...{ what, status },
        asked: {
          ...{ method: "PUT", path, body },
          headers: { ...managementHeaders(), "content-type": "text/csv" },
        },
      });
    const tooLong = members.next().repeat(20);
    await post("an audience", 201, "/api/v1/audiences", { key: "beta", name: plant });
    await upload("a list", 200, `${members.next()}\n${members.next()}\n`);
    await upload("a list with a line that is too long", 400, `${members.next()}\n${tooLong}\n`);
    await patch("changed entries", 200, { add: [members.next()], remove: [members.next()] });
    await patch("entries that are too long", 400, { add: [tooLong] });
    await patch("entries with more", 400, { add: [members.next()], more: members.next() });
    await post("a look-up", 200, `${path}/lookup`, { member: members.next() });
    await post("a look-up of a list", 400, `${path}/lookup`, { member: [members.next()] });
    await post("a flag for the audience", 201, "/api/v1/flags", {
      ...{ key: "for-beta", name: "For beta", enabled: true },
      targeting_rules: [{ conditions: [{ audience: "beta" }] }],
    });
    const [row] = await system.sql`
      select encode(key, 'hex') as key from fingerprint_keys where project_id = ${tenant.projectId}`;
    fingerprintKey = row?.key;
  }

  async function askEverything(): Promise<void> {
    const streams = await Promise.all(addresses().map(openStreams));
    for (const url of addresses()) {
      await askAll(url);
      await breakOff(url);
    }
    const url = `${gateway.url}/api/v1/flags/${flagId}`;
    await must(url, {
      method: "PATCH",
      key: tenant.serverKey,
      body: { rollout_percentage: 40 },
    });
    await must(`${gateway.url}/api/v1/flags`, {
      method: "POST",
      key: tenant.serverKey,
      body: { key: "second", name: "Second", enabled: true },
    });
    for (const stream of streams.flat()) {
      const change = /"second":true|refetchEvaluation/;
      await eventually(() => change.test(JSON.stringify(stream.events)), {
        because: "the stream has received the change",
      });
      answers.push({ name: "a stream", content: JSON.stringify([stream.headers, stream.events]) });
    }
  }

  /** Sends a management request with user data, which such routes ignore, but a client may always send. */
  function manage(what: string, status: number, asked: Omit<RawRequest, "headers">) {
    return ask(gateway.url, { what, status, asked: { ...asked, headers: managementHeaders() } });
  }

  const managementHeaders = () => ({
    authorization: `Bearer ${tenant.serverKey}`,
    "content-type": "application/json",
    "x-request-id": plant,
    "x-user-context": headerBytes(JSON.stringify(markedContext(marks))),
  });

  /** Explains the flag for marked users. Only the gateway and management process these requests. */
  async function explain(): Promise<void> {
    const { clientKey: client, serverKey: server } = tenant;
    const state = `/api/v1/flags/${flagId}/environments/${tenant.environmentId}`;
    for (const request of markedExplanations(marks, { client, server }, state))
      await ask(gateway.url, request);
  }

  async function schedule(): Promise<void> {
    const path = `/api/v1/flags/${flagId}/environments/${tenant.environmentId}/schedule`;
    const body = JSON.stringify({ enable_at: "2099-01-01T00:00:00Z" });
    await manage("a schedule", 201, { method: "POST", path, body });
    const wrong = JSON.stringify({ enable_at: marks.next() });
    await manage("an invalid schedule", 400, { method: "POST", path, body: wrong });
    const page = `/api/v1/schedules?cursor=${marks.next()}`;
    await manage("a page of schedules", 400, { method: "GET", path: page });
  }

  /** Creates a webhook, delivers an event to it, reads the delivery, and delivers it again. */
  async function deliver(): Promise<void> {
    const webhooks = `/api/v1/projects/${tenant.projectId}/webhooks`;
    const wanted = {
      name: plant,
      url: receiver.url,
      events: ["flag.toggled"],
      secret: webhookSecret,
    };
    const body = (change: object) => JSON.stringify({ ...wanted, ...change });
    const post = (what: string, status: number, path: string, sent?: string) =>
      manage(what, status, { method: "POST", path, ...(sent === undefined ? {} : { body: sent }) });
    await post("a webhook", 201, webhooks, body({}));
    await post("a webhook to nowhere", 400, webhooks, body({ url: marks.next() }));
    await post("a webhook for no event", 400, webhooks, body({ events: [marks.next()] }));
    await post("a webhook with more", 400, webhooks, body({ more: marks.next() }));
    const { url } = gateway;
    const key = tenant.serverKey;
    const listed = await must(url + webhooks, { key });
    const webhook = `${webhooks}/${listed.webhooks[0].id}`;
    await manage("a change", 200, {
      method: "PATCH",
      path: `/api/v1/flags/${flagId}`,
      body: JSON.stringify({ enabled: false }),
    });
    const deliveries = `${webhook}/deliveries`;
    const [delivery] = await eventually(async () => {
      const { deliveries: found } = await must(url + deliveries, { key });
      return found[0]?.status === "delivered" && found;
    });
    await manage("a delivery", 200, { method: "GET", path: `${deliveries}/${delivery.id}` });
    await post("a test", 200, `${webhook}/test`);
    await post("a redelivery", 202, `${deliveries}/${delivery.id}/redeliver`);
    await eventually(() => receiver.requests.length === 3, { because: "it is delivered again" });
    for (const query of [`cursor=${marks.next()}`, `status=${marks.next()}`])
      await manage("a page of deliveries", 400, { method: "GET", path: `${deliveries}?${query}` });
    const parts = receiver.requests.map(({ path, headers, raw }) =>
      [path, JSON.stringify(headers), raw.toString()].join("\n"),
    );
    sources.set("the requests to the receiver", [{ name: "receiver", content: parts.join("\n") }]);
  }

  /** Reads usage, with user data in the requests. */
  async function count(): Promise<void> {
    const get = (what: string, status: number, path: string) =>
      manage(what, status, { method: "GET", path });
    await eventually(async () => {
      const key = tenant.serverKey;
      const { requests } = await must(`${gateway.url}/api/v1/usage`, { key });
      if (requests.used <= leastCounted) throw new Error(`${requests.used} are counted`);
      return true;
    });
    await get("what was used", 200, "/api/v1/usage");
    await get("what was used, and more", 400, `/api/v1/usage?more=${marks.next()}`);
    await get("what was used each day", 200, "/api/v1/usage/days");
    await get("the same since some day", 400, `/api/v1/usage/days?from=${marks.next()}`);
    await get("which flags are used", 200, "/api/v1/usage/flags");
    await get("the same in some order", 400, `/api/v1/usage/flags?order=${marks.next()}`);
    const flag = `/api/v1/flags/${flagId}/usage`;
    await get("how often a flag is asked for", 200, flag);
    await get("the same for some time", 400, `${flag}?hours=${marks.next()}`);
    await get("the same of no flag", 404, `/api/v1/flags/${tenant.projectId}/usage`);
  }

  /** Opens streams that receive a change: the SDK stream, and the one that OFREP offers. */
  async function openStreams(url: string): Promise<EventStream[]> {
    const authorization = `Bearer ${tenant.clientKey}`;
    const context = headerBytes(JSON.stringify(markedContext(marks)));
    const bulk = await call(`${url}/ofrep/v1/evaluate/flags`, {
      method: "POST",
      key: tenant.clientKey,
      body: { context: { targetingKey: marks.next() } },
    });
    const { requestUri } = bulk.body.eventStreams[0].endpoint;
    secrets.push(String(new URL(requestUri, url).searchParams.get("token")?.split(".").at(-1)));
    return Promise.all([
      openEventStream(`${url}/api/v1/sdk/stream?user_id=${marks.next()}`, {
        authorization,
        "x-user-context": context,
      }),
      openEventStream(`${new URL(requestUri, url)}&user_id=${marks.next()}`, {
        "x-user-context": context,
      }),
    ]);
  }

  async function askAll(url: string): Promise<void> {
    const { clientKey: client, serverKey: server } = tenant;
    const requests = markedRequests(marks, { client, server, flag: flagKey });
    const work = async () => {
      for (let next = requests.pop(); next !== undefined; next = requests.pop())
        await ask(url, next);
    };
    await Promise.all(Array.from({ length: atOnce }, work));
  }

  async function ask(url: string, { what, asked, status }: MarkedRequest): Promise<void> {
    const answer = await sendRaw(url, asked);
    if (answer.status !== status)
      complaints.push(`${what} at ${url}: ${answer.status} ${answer.text.slice(0, 200)}`);
    const content = `${JSON.stringify(answer.headers)}\n${answer.text}`;
    answers.push({ name: `the answer to ${what}`, content });
  }

  /** Sends requests that stay incomplete, and bytes that are not HTTP. */
  async function breakOff(url: string): Promise<void> {
    const head = (path: string, more: string) =>
      `POST ${path} HTTP/1.1\r\nHost: halyard\r\nAuthorization: Bearer ${tenant.clientKey}\r\n` +
      `Content-Type: application/json\r\n${more}\r\n\r\n`;
    const begun = () => JSON.stringify(markedContext(marks)).slice(0, -1);
    const paths = [
      "/api/v1/sdk/flags",
      `/api/v1/sdk/evaluate?key=${flagKey}`,
      "/ofrep/v1/evaluate/flags",
    ];
    await Promise.all(
      paths.flatMap((path) => [
        sendAndLeave(url, `${head(path, "Content-Length: 5000")}${begun()}`, (socket) =>
          socket.destroy(),
        ),
        sendAndLeave(url, `${head(path, "Content-Length: 5000")}${begun()}`, (socket) =>
          socket.resetAndDestroy(),
        ),
        sendAndLeave(
          url,
          `${head(path, "Transfer-Encoding: chunked")}1000\r\n${begun()}`,
          (socket) => void socket.end(),
        ),
      ]),
    );
    const malformed = [
      `${head("/api/v1/sdk/flags", "Transfer-Encoding: chunked")}${marks.next()}\r\n${begun()}`,
      `GET /api/v1/sdk/flags HTTP/1.1\r\nHost: halyard\r\nX-User-ID ${marks.next()}\r\n\r\n`,
      `GET /api/v1/sdk/flags?user_id=${marks.next()} ${marks.next()} HTTP/1.1\r\n\r\n`,
      `GET /api/v1/sdk/flags HTTP/1.1\r\nHost: halyard\r\nX-User-ID: ${marks.next()}\0\r\n\r\n`,
      `GET /api/v1/sdk/flags HTTP/1.1\r\nConnection: close\r\nX-User-ID: ${marks.next()}\r\n\r\n`,
    ];
    for (const bytes of malformed) {
      const content = await exchangeBytes(url, bytes);
      if (!/^HTTP\/1\.1 4\d\d /.test(content)) complaints.push(`to malformed HTTP: ${content}`);
      answers.push({ name: "the answer to malformed HTTP", content });
    }
  }

  async function readMetrics(): Promise<void> {
    const { managements, schedulers, dispatchers, meterings } = system;
    const replicas = [...managements, ...schedulers, ...dispatchers, ...meterings];
    const processes = [...replicas, gateway, edge.process];
    const read = processes.map(async ({ metricsUrl }) => ({
      name: metricsUrl,
      content: await (await fetch(`${metricsUrl}/metrics`)).text(),
    }));
    sources.set("metrics", await Promise.all(read));
  }

  /** Stops the edge first, so that further requests reach a gateway without an edge. */
  async function stopInOrder(): Promise<void> {
    const { clientKey: client, serverKey: server } = tenant;
    exits.push(await edge.process.stop());
    for (const request of markedRequests(marks, { client, server, flag: flagKey }).slice(0, 20)) {
      const headers = { ...request.asked.headers, "x-request-id": plant };
      await ask(gateway.url, { ...request, asked: { ...request.asked, headers }, status: 503 });
    }
    exits.push(await gateway.stop());
    for (const metering of system.meterings) exits.push(await metering.stop());
    for (const dispatcher of system.dispatchers) exits.push(await dispatcher.stop());
    for (const scheduler of system.schedulers) exits.push(await scheduler.stop());
    for (const management of system.managements) exits.push(await management.stop());
  }

  async function collectWhatIsLeft(sinceMs: number): Promise<void> {
    const log = (name: string, process: ServiceProcess | undefined) =>
      sources.set(name, [{ name, content: process?.log() ?? "" }]);
    log("the log of management", system.managements[0]);
    log("the log of the scheduler", system.schedulers[0]);
    log("the log of the dispatcher", system.dispatchers[0]);
    log("the log of usage metering", system.meterings[0]);
    log("the log of the gateway", gateway);
    log("the log of the edge", edge.process);
    const traces = collector.requests.map(({ path, raw }) => ({ name: path, content: `${raw}` }));
    sources.set("the traces", traces);
    sources.set("the tables of PostgreSQL", await databaseRows(system.sql));
    sources.set("the streams of NATS", await streamMessages(system.nats.url));
    sources.set("the traffic of NATS", captured.sources());
    await system.sql`checkpoint`;
    const { nats, postgres } = system;
    if (postgres === undefined) throw new Error("the system has no PostgreSQL server");
    await Promise.all([nats.kill(), postgres.kill()]);
    const files = (...paths: string[]) => [...filesWritten(paths, sinceMs)];
    sources.set("the files of PostgreSQL", files(postgres.clusterDir));
    sources.set("the log of PostgreSQL", files(postgres.logFile));
    sources.set("the files of NATS", files(nats.storeDir));
    sources.set("the files of the edge", files(system.directory));
  }

  it("has returned the expected response to every request", () => {
    expect(complaints).toEqual([]);
    expect(answers.length).toBeGreaterThan(400);
  });

  it("has repeated no user data in a response or event", () => {
    expect(marks.traces(answers, [webhookSecret])).toEqual([]);
  });

  it("has stopped every process in order, without errors", () => {
    expect(exits).toEqual([0, 0, 0, 0, 0, 0]);
    const { managements, schedulers, dispatchers, meterings } = system;
    const replicas = [...managements, ...schedulers, ...dispatchers, ...meterings];
    for (const process of [...replicas, gateway, edge.process])
      expect(process.log()).not.toMatch(/"level":"(error|fatal)"/);
  });

  it("has written no file except the disk cache, and sent nothing but traces to the collector", () => {
    expect(readdirSync(system.directory)).toEqual(["edge-1.cache"]);
    expect(new Set(collector.requests.map(({ path }) => path))).toEqual(new Set(["/v1/traces"]));
  });

  /** Sources, each with a text that must be found in it. It is the plant, unless the plant cannot be there. */
  const known: [place: string, text: () => string][] = [
    ["metrics", () => "halyard_sdk_responses_total"],
    ["the log of management", () => plant],
    ["the log of the scheduler", () => plant],
    ["the log of the dispatcher", () => plant],
    ["the log of usage metering", () => plant],
    ["the requests to the receiver", () => flagKey],
    ["the log of the gateway", () => plant],
    ["the log of the edge", () => edge.url],
    ["the traces", () => "usage.recorded"],
    ["the tables of PostgreSQL", () => plant],
    ["the streams of NATS", () => plant],
    ["the traffic of NATS", () => plant],
    ["the files of PostgreSQL", () => plant],
    ["the log of PostgreSQL", () => plant],
    ["the files of NATS", () => plant],
    ["the files of the edge", () => plant],
  ];

  it.each(known)("has left no user data and no credential in %s", (place) => {
    expect(marks.traces(sources.get(place) ?? [], secrets)).toEqual([]);
  });

  it.each(known)("would have found them in %s", (place, text) => {
    expect(findTraces(sources.get(place) ?? [], needlesFor([text()]))).not.toEqual([]);
  });

  it("has returned no entry of a list, and no key of the fingerprints of a project", () => {
    expect(members.traces(answers)).toEqual([]);
    expect(findTraces(answers, needlesOfKey())).toEqual([]);
  });

  const needlesOfKey = () => {
    const bytes = Buffer.from(fingerprintKey, "hex");
    return new Map([
      ...needlesFor([fingerprintKey]),
      [bytes.toString("latin1").toLowerCase(), "the key in bytes"],
      [bytes.toString("base64").slice(0, -3).toLowerCase(), "the key in base64"],
    ]);
  };

  it.each(known.filter(([place]) => place !== "the files of PostgreSQL"))(
    "has left no entry of a list in %s outside of the table for them",
    (place) => {
      const searched = sources.get(place) ?? [];
      const traces = searched.filter((source) => members.traces([source]).length > 0);
      expect(traces.map(({ name }) => name)).toEqual(
        place === "the tables of PostgreSQL" ? ["table management.audience_members"] : [],
      );
    },
  );

  /** The parts of each place that contain the key: the project's row, and the entries of audiences for edges and SDKs. */
  const keyPlaces: Record<string, readonly string[]> = {
    "the tables of PostgreSQL": ["table management.fingerprint_keys", "table management.outbox"],
    "the streams of NATS": [`stream ${snapshotBucket.streamName}`],
    "the traffic of NATS": ["messages $KV", "messages _INBOX"],
  };

  it.each(known.filter(([place]) => !place.startsWith("the files of")))(
    "has left the key of the fingerprints in %s only where edges read it",
    (place) => {
      const searched = sources.get(place) ?? [];
      const traces = searched.filter((source) => findTraces([source], needlesOfKey()).length > 0);
      expect(traces.map(({ name }) => name).toSorted()).toEqual(keyPlaces[place] ?? []);
    },
  );

  it("has searched usage counts and their messages", () => {
    const searched = [...sources.values()].flat().map(({ name }) => name);
    expect(searched).toEqual(
      expect.arrayContaining([
        "table usage.request_hours",
        "table usage.flag_hours",
        "table usage.keys_last_seen",
        "stream KV_QUOTA",
        "stream USAGE",
        "messages usage",
      ]),
    );
  });

  it("has a known text for every source", () => {
    expect([...sources.keys()].toSorted()).toEqual(known.map(([place]) => place).toSorted());
  });
});

describe("given a mark in another form", () => {
  const mark = marks.next();
  const around = (text: string) => `{"a":"${text}","b":1}`;
  const forms: [form: string, written: string | Buffer][] = [
    ["unchanged", around(mark)],
    ["in lower case", around(mark.toLowerCase())],
    ["in upper case", around(mark.toUpperCase())],
    ["in base64", Buffer.from(around(mark)).toString("base64")],
    ["in base64, one byte on", Buffer.from(`1${around(mark)}`).toString("base64")],
    ["in base64, two bytes on", Buffer.from(`12${around(mark)}`).toString("base64")],
    ["in base64url", Buffer.from(`é?>${around(mark)}`).toString("base64url")],
    ["in lower case and base64", Buffer.from(around(mark.toLowerCase())).toString("base64")],
    ["in hexadecimal", Buffer.from(around(mark)).toString("hex")],
    ["in upper-case hexadecimal", Buffer.from(around(mark)).toString("hex").toUpperCase()],
    ["percent-encoded", encodeURIComponent(around(mark))],
    ["percent-encoded, each byte", Buffer.from(mark).toString("hex").replaceAll(/../g, "%$&")],
    ["escaped for JSON", Buffer.from(mark).toString("hex").replaceAll(/../g, "\\u00$&")],
    ["in UTF-16", Buffer.from(around(mark), "utf16le")],
    ["cut after its first half", around(mark.slice(0, 13))],
    ["cut before its second half", around(mark.slice(-13))],
    ["among bytes that are not text", Buffer.concat([Buffer.from([0xff, 0]), Buffer.from(mark)])],
  ];

  it.each(forms)("finds it %s", (form, written) => {
    expect(marks.traces([{ name: form, content: written }])).not.toEqual([]);
  });

  it("finds the number", () => {
    expect(marks.traces([{ name: "a number", content: `[${marks.digits}]` }])).not.toEqual([]);
  });
});
