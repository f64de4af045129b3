import { connect } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { getFlag, listFlags, updateFlagState } from "@halyard/contracts";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { answer, createProblem, registerRoute, UnavailableError } from "../src/index.ts";
import { type GivenApp, givenApp, sendRaw } from "./given-app.ts";

/** The input of handlers, the headers and log lines of responses, and the metrics. */
const id = "018f0000-0000-7000-8000-000000000001";
class SafeError extends Error {
  readonly hasSafeMessage = true;
}

const authenticate = () => ({ name: "caller" });

let given: GivenApp;
afterEach(() => given.close());

describe("given a route that delays a request before its body is read", () => {
  let handled: string[];
  let admit: (() => void) | undefined;

  /** A route whose requests wait for `admit`. */
  const start = (
    handle: () => Promise<void> = async () => undefined,
    options: { admittedBodyMs?: number } = {},
  ) =>
    givenApp((app) =>
      registerRoute(app, updateFlagState, {
        ...options,
        authenticate,
        admitBody: async () => {
          await new Promise<void>((resolve) => {
            admit = resolve;
          });
          return () => void handled.push("released");
        },
        handle: async () => {
          handled.push("begun");
          await handle();
          handled.push("ended");
          return answer.noContent();
        },
      }),
    );
  const target = `/api/v1/flags/${id}/environments/${id}`;
  const send = (body: string) =>
    fetch(given.url + target, {
      method: "PATCH",
      headers: { "content-type": "application/json" },
      body,
    });
  /** Sends a request on a new connection. `leave` closes it, and waits until the server has noticed. */
  const sendAndLeave = (body: string) => {
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    given.app.server.once("connection", (accepted) => accepted.once("close", () => resolve()));
    const socket = connect(given.port, "127.0.0.1");
    const length = Buffer.byteLength(body);
    const head = `PATCH ${target} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n`;
    socket.write(`${head}Content-Length: ${length}\r\n\r\n${body}`);
    return {
      leave: () => {
        socket.destroy();
        return closed;
      },
    };
  };
  const until = async (condition: () => boolean) => {
    while (!condition()) await nextTurn();
  };

  beforeEach(() => {
    handled = [];
    admit = undefined;
  });

  it("ends the admission when the request has been handled", async () => {
    given = await start();
    const answered = send('{"enabled":true}');
    await until(() => admit !== undefined);
    expect(handled).toEqual([]);
    admit?.();
    await answered;
    expect(handled).toEqual(["begun", "ended", "released"]);
  });

  it("ends the admission of a request whose body is invalid", async () => {
    given = await start();
    const answered = send("{");
    await until(() => admit !== undefined);
    admit?.();
    expect((await answered).status).toBe(400);
    await until(() => handled.length > 0);
    expect(handled).toEqual(["released"]);
  });

  it("does not handle the request of a client that left meanwhile", async () => {
    given = await start();
    const { leave } = sendAndLeave('{"enabled":true}');
    await until(() => admit !== undefined);
    await leave();
    admit?.();
    await until(() => handled.length > 0);
    expect(handled).toEqual(["released"]);
  });

  it("closes the connection of a client that does not send the body in time", async () => {
    given = await start(undefined, { admittedBodyMs: 20 });
    const request = `PATCH ${target} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{`;
    const received = sendRaw(given.port, request);
    await until(() => admit !== undefined);
    admit?.();
    expect(await received).toBe("");
    await until(() => handled.length > 0);
    expect(handled).toEqual(["released"]);
  });

  it("does not end the admission of a handler that takes longer than the body may", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    given = await start(() => promise, { admittedBodyMs: 1 });
    const answered = send('{"enabled":true}');
    await until(() => admit !== undefined);
    admit?.();
    await until(() => handled.length > 0);
    setTimeout(resolve, 5);
    await answered;
    expect(handled).toEqual(["begun", "ended", "released"]);
  });

  it("does not end the admission of a handler whose client leaves", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    given = await start(() => promise);
    const { leave } = sendAndLeave('{"enabled":true}');
    await until(() => admit !== undefined);
    admit?.();
    await until(() => handled.length > 0);
    await leave();
    expect(handled).toEqual(["begun"]);
    resolve();
    await until(() => handled.length > 2);
    expect(handled).toEqual(["begun", "ended", "released"]);
  });
});

describe("given a route registered by its contract", () => {
  it("passes typed parameters, query and facts to the handler", async () => {
    const seen: unknown[] = [];
    given = await givenApp((app) =>
      registerRoute(app, listFlags, {
        authenticate,
        handle: ({ query, request }, principal) => {
          const limit: number | undefined = query.limit;
          seen.push({ limit, cursor: query.cursor, principal, ip: request.ip });
          return answer.ok({ flags: [] }, { etag: '"7"' });
        },
      }),
    );
    const answered = await fetch(`${given.url}/api/v1/flags?limit=10&cursor=%C3%A4+b`);
    expect(answered.headers.get("etag")).toBe('"7"');
    expect(seen).toEqual([
      { limit: 10, cursor: "ä b", principal: { name: "caller" }, ip: "127.0.0.1" },
    ]);
  });

  it("responds equally to the additional method of the contract", async () => {
    const state = {
      flag_id: id,
      environment_id: id,
      enabled: true,
      rollout_percentage: 100,
      targeting_rules: [],
      version: 2,
      updated_at: "2027-01-31T09:00:00.000Z",
    };
    given = await givenApp((app) =>
      registerRoute(app, updateFlagState, { authenticate, handle: () => answer.ok(state) }),
    );
    for (const method of ["PATCH", "PUT"]) {
      const answered = await fetch(`${given.url}/api/v1/flags/${id}/environments/${id}`, {
        method,
        headers: { "content-type": "application/json" },
        body: '{"enabled":true}',
      });
      expect(await answered.json()).toEqual(state);
    }
  });

  it.each([
    ["an additional field", { flags: [], extra: 1 }],
    ["a missing field", {}],
  ])("fails for a response with %s, unless the check is off", async (_what, body) => {
    for (const [checkAnswers, status] of [
      [true, 500],
      [false, 200],
    ] as const) {
      given = await givenApp(
        (app) => registerRoute(app, listFlags, { authenticate, handle: () => answer.ok(body) }),
        { checkAnswers },
      );
      expect((await fetch(`${given.url}/api/v1/flags`)).status).toBe(status);
      if (checkAnswers) {
        expect(given.logText()).toContain("AnswerMismatchError");
        await given.close();
      }
    }
  });
});

describe("given a request id", () => {
  it.each([
    ["a short one", "abc-123"],
    ["one of 128 characters", "x".repeat(128)],
  ])("returns %s and logs it", async (_what, requestId) => {
    given = await givenApp(() => undefined);
    const answered = await fetch(`${given.url}/x`, { headers: { "x-request-id": requestId } });
    expect(answered.headers.get("x-request-id")).toBe(requestId);
    await answered.text();
    expect(given.lines().at(-1)).toMatchObject({ request_id: requestId, status: 404 });
  });

  it.each([
    ["none", undefined],
    ["an empty one", ""],
    ["one that is too long", "x".repeat(129)],
    ["one with a space", "a b"],
    ["one that is not ASCII", "\u00e4"],
  ])("creates a unique one instead of %s", async (_what, requestId) => {
    given = await givenApp(() => undefined);
    const headers: Record<string, string> =
      requestId === undefined ? {} : { "x-request-id": requestId };
    const made = await Promise.all(
      [1, 2, 3].map(async () => {
        const answered = await fetch(`${given.url}/x`, { headers });
        return answered.headers.get("x-request-id");
      }),
    );
    expect(new Set(made).size).toBe(3);
    expect(made).not.toContain(requestId);
  });
});

describe("given a request with private data", () => {
  it("logs neither the query, nor the body, nor headers that identify a caller or a user", async () => {
    given = await givenApp((app) => {
      app.post("/*", (request) => {
        request.log.warn({ req: request.raw, headers: request.headers }, "looked at");
        request.log.warn({ request: { headers: request.headers } }, "looked at again");
        throw new Error("went wrong");
      });
    });
    await fetch(`${given.url}/path?user_id=quiet-query`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: "Bearer quiet-key",
        "x-api-key": "quiet-key",
        "x-user-context": '{"id":"quiet-user"}',
        "x-user-email": "quiet@example.com",
      },
      body: '{"user_id":"quiet-body"}',
    });
    expect(given.logText()).toContain("/path");
    expect(given.logText()).not.toContain("quiet");
  });

  it("logs no fragment of a target", async () => {
    given = await givenApp(() => undefined);
    const request =
      "GET /path#quiet?user_id=quiet HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    await sendRaw(given.port, request);
    expect(given.lines().at(-1)).toMatchObject({ path: "/path", status: 404 });
  });

  it.each(["hc", "hs", "hr"])(
    "masks keys that begin with %s_ in every field of a line",
    async (kind) => {
      const key = `${kind}_abcdefghijklmnop_${"Secret-_".repeat(6).slice(0, 43)}`;
      given = await givenApp((app) => {
        app.get("/api/v1/flags/*", (request) => {
          request.log.warn({ about: `${key}\n${key}` }, `saw ${key}`);
          throw new SafeError(key);
        });
      });
      const headers = { "x-request-id": key };
      for (const text of [key, encodeURIComponent(key).replaceAll("_", "%5F"), key.slice(0, -9)])
        await fetch(`${given.url}/api/v1/flags/${text}`, { headers });
      expect(given.logText()).toContain(`/api/v1/flags/${kind}_[hidden]`);
      expect(given.logText()).not.toContain("Secret");
    },
  );

  it("logs failures of an app that does not log its requests", async () => {
    given = await givenApp(
      (app) => {
        app.get("/fine", (_request, reply) => reply.send("fine"));
        app.get("/fails", () => {
          throw new Error("went wrong");
        });
      },
      { requestLog: false },
    );
    await fetch(`${given.url}/fine`);
    await fetch(`${given.url}/fails`);
    expect(given.lines().map(({ msg }) => msg)).toEqual(["request failed", "request"]);
  });
});

describe("given an app whose requests all fail", () => {
  it.each([
    ["request failed", "/fails"],
    ["request not served", "/unavailable"],
  ])("logs at most a hundred lines `%s` in ten seconds", async (message, path) => {
    given = await givenApp((app) => {
      app.get("/fails", () => {
        throw new Error("went wrong");
      });
      app.get("/unavailable", () => {
        throw new UnavailableError("the database is unavailable");
      });
    });
    await Promise.all(Array.from({ length: 110 }, () => fetch(given.url + path)));
    expect(given.lines().filter(({ msg }) => msg === message)).toHaveLength(100);
  });
});

describe("given an app that does not log its requests", () => {
  const head = "HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";

  it.each([
    ["to an unknown path", `GET /unknown ${head}\r\n`, 404],
    [
      "to an unknown path with an invalid body",
      `POST /unknown ${head}Content-Type: application/json\r\nContent-Length: 1\r\n\r\n{`,
      404,
    ],
    ["to an undecodable path", `GET /%zz ${head}\r\n`, 404],
    ["of a route", `GET /api/v1/flags ${head}\r\n`, 401],
    ["of a route that is not measured", `GET /probe ${head}\r\n`, 503],
    ["of a route that takes its requests", `GET /api/v1/flags/1 ${head}\r\n`, 418],
    ["to a repeated Host", `GET /probe ${head}Host: b\r\n\r\n`, 400],
    ["to a repeated Host of an unknown path", `GET /unknown ${head}Host: b\r\n\r\n`, 400],
    ["to an unknown expectation", `GET /probe ${head}Expect: 200-x\r\n\r\n`, 400],
    ["to bytes that are not HTTP", "HELLO\r\n\r\n", 400],
    ["to CONNECT", `CONNECT example.com:443 ${head}\r\n`, 404],
  ])("logs the id of an error response %s", async (_what, request, status) => {
    given = await givenApp(
      (app) => {
        registerRoute(app, listFlags, {
          authenticate: () => createProblem("AUTH_001", "A key is needed"),
          handle: () => answer.ok({ flags: [] }),
        });
        registerRoute(app, getFlag, {
          take: (taken, response) => {
            response.writeHead(418, { "x-request-id": taken.id }).end();
          },
        });
        app.get("/probe", { config: { measured: false } }, (_request, reply) =>
          reply.code(503).send(),
        );
      },
      { requestLog: false },
    );
    const received = await sendRaw(given.port, request);
    expect(received).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    const id = /^x-request-id: (\S+)\r$/im.exec(received)?.[1];
    expect(given.lines()).toEqual([expect.objectContaining({ request_id: id, status })]);
  });
});

describe("given responses", () => {
  it("measures them by the pattern of the route, never by the path", async () => {
    given = await givenApp(
      (app) => {
        registerRoute(app, getFlag, { authenticate, handle: () => answer.noContent() });
        app.get("/probe", { config: { measured: false } }, (_request, reply) => reply.send("ok"));
      },
      { checkAnswers: false },
    );
    for (const path of [
      `/api/v1/flags/${id}`,
      "/api/v1/flags/1",
      "/unknown/1",
      "/unknown/2",
      "/probe",
    ])
      await (await fetch(given.url + path)).text();
    const text = await given.metrics.metrics();
    const counts = text
      .split("\n")
      .filter((line) => line.startsWith("halyard_http_request_duration_seconds_count"))
      .map((line) => line.replace(/^.*service="test",/, "{"));
    expect(counts.toSorted()).toEqual([
      '{method="GET",route="/api/v1/flags/:id",status="204"} 1',
      '{method="GET",route="/api/v1/flags/:id",status="404"} 1',
      '{method="any",route="unmatched",status="404"} 2',
    ]);
  });
});

describe("given a proxy in front", () => {
  it("accepts a forwarded address only from a trusted proxy", async () => {
    const addresses: string[] = [];
    for (const trustedProxies of [[], ["127.0.0.0/8"]]) {
      given = await givenApp(
        (app) =>
          registerRoute(app, listFlags, {
            authenticate,
            handle: ({ request }) => {
              addresses.push(request.ip);
              return answer.ok({ flags: [] });
            },
          }),
        { trustedProxies },
      );
      const headers = { "x-forwarded-for": "203.0.113.9" };
      await fetch(`${given.url}/api/v1/flags`, { headers });
      if (trustedProxies.length === 0) await given.close();
    }
    expect(addresses).toEqual(["127.0.0.1", "203.0.113.9"]);
  });
});
