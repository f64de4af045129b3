import { compileCheck, errorCodes, routes } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import { Validator } from "@seriousme/openapi-schema-validator";
import type { z } from "zod";
import { buildConfigurationPage } from "../src/configuration-page.ts";
import { messageSchemas } from "../src/message-schemas.ts";
import { buildDocument } from "../src/openapi/document.ts";

/** Tests of the generated documents. */
type Operation = {
  operationId: string;
  security: Record<string, unknown>[];
  parameters: Record<string, unknown>[];
  responses: Record<string, Record<string, unknown>>;
};
type Document = Record<string, unknown> & { paths: Record<string, Record<string, Operation>> };
const document = buildDocument() as Document;

function operation(method: string, path: string): Operation {
  const found = document.paths[path]?.[method];
  if (found === undefined) throw new Error(`${method} ${path} is not in the document`);
  return found;
}

/** Returns whether a response has both limit headers, either itself or by reference. */
function reportsLimits(response: Record<string, unknown> | undefined): boolean {
  const { responses } = document.components as {
    responses: Record<string, Record<string, unknown>>;
  };
  const name = String(response?.$ref).replace("#/components/responses/", "");
  const headers = (responses[name] ?? response)?.headers as Record<string, unknown>;
  return "RateLimit" in headers && "RateLimit-Policy" in headers;
}

describe("given the OpenAPI document", () => {
  it("is valid OpenAPI 3.1", async () => {
    const validator = new Validator();
    expect(await validator.validate(structuredClone(document))).toMatchObject({ valid: true });
    expect(validator.version).toBe("3.1");
  });

  it("has patterns that other languages can read, and engines without the flag u", () => {
    const patterns = JSON.stringify(document).matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g);
    const texts = [...new Set([...patterns].map(([, text = ""]) => JSON.parse(text) as string))];
    expect(texts.length).toBeGreaterThan(10);
    for (const text of texts) {
      expect(text).not.toMatch(/\\p\{|\\u\{/i);
      expect(() => [new RegExp(text), new RegExp(text, "u")]).not.toThrow();
    }
  });

  it("has every route and method of the contract, each with a unique operation id", () => {
    const expected = routes.flatMap(({ method, alsoMethod, path }) =>
      [method, alsoMethod].flatMap((each) =>
        each === undefined ? [] : [`${each} ${path.replaceAll(/:(\w+)/g, "{$1}")}`],
      ),
    );
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId }]) => ({
        name: `${method.toUpperCase()} ${path}`,
        operationId,
      })),
    );
    expect(operations.map(({ name }) => name).toSorted()).toEqual(expected.toSorted());
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
  });

  it("has the error responses without a key and of internal errors for every route", () => {
    for (const methods of Object.values(document.paths))
      for (const { responses, security } of Object.values(methods)) {
        expect(Object.keys(responses)).toEqual(
          expect.arrayContaining(["400", "401", "404", "413", "429", "500", "503"]),
        );
        expect(security.length).toBeGreaterThan(0);
      }
  });

  it("lists the accepted keys of a route, and 403 if one kind of key is rejected", () => {
    const anyKey = [{ clientKey: [] }, { readerKey: [] }, { serverKey: [] }];
    expect(operation("get", "/api/v1/sdk/flags").security).toEqual(anyKey);
    expect(operation("get", "/api/v1/sdk/ruleset").security).toEqual(anyKey.slice(1));
    expect(operation("get", "/ofrep/v1/stream").responses["403"]).toBeUndefined();
    expect(operation("post", "/api/v1/flags").security).toEqual([
      { serverKey: [] },
      { session: [] },
    ]);
    expect(operation("post", "/api/v1/flags").responses["403"]).toEqual({
      $ref: "#/components/responses/AUTH_002",
    });
    expect(operation("post", "/api/v1/organizations").security).toEqual([{ operatorToken: [] }]);
  });

  it("describes OFREP with its errors, both headers for the key, and the token of the stream", () => {
    const flag = operation("post", "/ofrep/v1/evaluate/flags/{key}");
    expect(flag.security).toEqual([
      ...[{ clientKey: [] }, { readerKey: [] }, { serverKey: [] }],
      { keyInOwnHeader: [] },
    ]);
    const schemaOf = (path: string, status: string) =>
      JSON.stringify(operation("post", path).responses[status]);
    for (const status of ["400", "401", "404", "413", "415", "429", "500", "503"])
      expect(schemaOf("/ofrep/v1/evaluate/flags/{key}", status)).toContain("OfrepFlagError");
    for (const status of ["400", "401", "413", "415", "429", "500", "503"])
      expect(schemaOf("/ofrep/v1/evaluate/flags", status)).toContain("schemas/OfrepError");
    expect(operation("get", "/ofrep/v1/stream").security).toEqual([{ streamToken: [] }]);
  });

  it("describes conditional and idempotent requests", () => {
    const parameters = (method: string, path: string) =>
      JSON.stringify(operation(method, path).parameters);
    expect(parameters("patch", "/api/v1/flags/{id}")).toContain("If-Match");
    expect(operation("patch", "/api/v1/flags/{id}").responses).toHaveProperty("412");
    expect(parameters("post", "/api/v1/flags")).toContain("Idempotency-Key");
    expect(parameters("get", "/api/v1/sdk/flags")).toContain("If-None-Match");
    expect(operation("get", "/api/v1/sdk/flags").responses).toHaveProperty("304");
    expect(JSON.stringify(operation("get", "/api/v1/flags/{id}").responses["200"])).toContain(
      "headers/ETag",
    );
    expect(operation("post", "/api/v1/flags").responses["201"]?.headers).toMatchObject({
      Location: { required: true },
    });
  });

  it("describes 202 for a redelivery, and PUT as a second method for changing a webhook", () => {
    const path = "/api/v1/projects/{projectId}/webhooks/{webhookId}";
    const { responses } = operation("post", `${path}/deliveries/{deliveryId}/redeliver`);
    expect(JSON.stringify(responses["202"])).toContain("schemas/Delivery");
    expect(responses).not.toHaveProperty("200");
    expect(operation("patch", path).operationId).toBe("updateWebhook");
    expect(operation("put", path).operationId).toBe("updateWebhookByPUT");
  });

  it("has a valid example for every body and every required parameter", () => {
    for (const { operationId, body, example } of routes.filter((route) => route.body !== undefined))
      expect([operationId, compileCheck(body as z.ZodType)(example)]).toEqual([
        operationId,
        { ok: true, value: example },
      ]);
    const parameters = Object.values(document.paths).flatMap((methods) =>
      Object.values(methods).flatMap((each) => each.parameters),
    );
    const required = parameters.filter((parameter) => parameter.required === true);
    expect(required.length).toBeGreaterThan(20);
    for (const { name, example } of required)
      expect([name, typeof example]).not.toEqual([name, "undefined"]);
  });

  it("describes which caches may store a response, and on which headers it depends", () => {
    const headersOf = (method: string, path: string, status: string) =>
      operation(method, path).responses[status]?.headers as Record<string, { schema: object }>;
    const sessionVary = "Authorization, Cookie, Halyard-Environment";
    const read = headersOf("get", "/api/v1/flags", "200");
    expect(read["Cache-Control"]?.schema).toMatchObject({ const: "private, no-cache" });
    expect(read.Vary?.schema).toMatchObject({
      enum: [sessionVary, `${sessionVary}, Accept-Encoding`],
    });
    const evaluated = headersOf("post", "/ofrep/v1/evaluate/flags", "304");
    expect(evaluated.Vary?.schema).toMatchObject({ const: "Authorization, X-API-Key" });
    const keys = "/api/v1/projects/{projectId}/environments/{environmentId}/keys";
    const issued = headersOf("post", keys, "201");
    expect(issued["Cache-Control"]?.schema).toMatchObject({ const: "no-store" });
  });

  it("has a description for the tag of every route", () => {
    const { tags } = document as unknown as { tags: { name: string; description: string }[] };
    const described = new Set(tags.filter((tag) => tag.description !== "").map((tag) => tag.name));
    expect(routes.filter(({ tag }) => !described.has(tag))).toEqual([]);
  });

  it("describes the ETag of a rollback, and the current ETag of a rejected one", () => {
    const { responses } = operation("post", "/api/v1/flags/{flagId}/environments/{envId}/rollback");
    expect(responses["200"]?.headers).toHaveProperty("ETag");
    expect(responses["412"]).toEqual({ $ref: "#/components/responses/CONFLICT_003" });
    const { components } = document as unknown as {
      components: { responses: Record<string, { headers: object }> };
    };
    expect(components.responses.CONFLICT_003?.headers).toHaveProperty("ETag");
    expect(operation("delete", "/api/v1/flags/{id}").responses["204"]?.headers).not.toHaveProperty(
      "ETag",
    );
  });

  it("describes that a schedule needs a time, and the format of times", () => {
    const { components } = document as unknown as {
      components: { schemas: Record<string, { properties: Record<string, object> }> };
    };
    const { SetSchedule } = components.schemas;
    expect(SetSchedule).toMatchObject({ minProperties: 1 });
    for (const field of ["enable_at", "disable_at"])
      expect(SetSchedule?.properties[field]).toMatchObject({
        description: expect.stringContaining("When the flag is switched"),
        examples: [expect.stringMatching(/^2099-/)],
        anyOf: [
          { format: "date-time", description: expect.stringContaining("YYYY-MM-DDThh:mm") },
          { type: "null" },
        ],
      });
  });

  it("has limit headers in all responses to SDKs except 401, and elsewhere only in 429", () => {
    for (const [path, methods] of Object.entries(document.paths))
      for (const [method, { responses }] of Object.entries(methods)) {
        const telling = Object.keys(responses).filter((status) => reportsLimits(responses[status]));
        const expected = /^\/(api\/v1\/sdk|ofrep)\//.test(path)
          ? Object.keys(responses).filter((status) => status !== "401")
          : ["429"];
        expect([method, path, telling]).toEqual([method, path, expected]);
      }
  });

  it("describes the default and maximum number of hours of a flag's usage", () => {
    expect(operation("get", "/api/v1/flags/{id}/usage").parameters).toContainEqual({
      name: "hours",
      in: "query",
      required: false,
      schema: { type: "integer", minimum: 1, maximum: 720, default: 24 },
    });
  });

  it("has a response for every error code", () => {
    const { paths, components } = document as { paths: object; components: { responses: object } };
    const described = JSON.stringify([paths, components.responses]);
    const missing = Object.keys(errorCodes).filter((code) => !described.includes(`"${code}":`));
    expect(missing).toEqual([]);
  });
});

describe("given the other generated documents", () => {
  it("has a schema of every message", () => {
    for (const { name, schema } of messageSchemas()) {
      expect(name).toMatch(/^[a-z-]+\.schema\.json$/);
      expect(schema).toMatchObject({ $schema: expect.stringContaining("2020-12") });
      // A message with several states, or of several kinds, has one schema for each.
      const { anyOf = [schema], oneOf = anyOf } = schema as {
        anyOf?: unknown[];
        oneOf?: unknown[];
      };
      for (const one of oneOf) expect(one).toMatchObject({ type: "object" });
    }
  });

  it("has a schema of the payload of webhooks", () => {
    const payload = messageSchemas().find(({ name }) => name === "webhook-payload.schema.json");
    expect(payload?.schema).toMatchObject({
      anyOf: [
        {
          required: ["event", "timestamp", "flag", "environment", "triggered_by"],
          properties: { state: expect.anything(), changes: expect.anything() },
        },
        { required: expect.arrayContaining(["event", "audience", "change", "flags_total"]) },
        { required: expect.arrayContaining(["event", "change_request", "text"]) },
        { required: expect.arrayContaining(["event", "environment", "protected", "text"]) },
      ],
    });
  });

  it("has the variables of every service", async () => {
    const page = await buildConfigurationPage();
    for (const line of [
      "## dashboard",
      "## management",
      "## scheduler",
      "## usage-metering",
      "## webhook-dispatcher",
      "`DASHBOARD_DIR`",
      "`POSTGRES_URL`",
    ])
      expect(page).toContain(line);
  });
});
