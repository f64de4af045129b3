import { errorCodes, routes } from "@halyard/contracts";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Validator } from "@seriousme/openapi-schema-validator";
import { buildConfigurationPage } from "../src/configuration-page.ts";
import { messageSchemas } from "../src/message-schemas.ts";
import { buildDocument } from "../src/openapi/document.ts";
import { type GivenGateway, givenGateway, originOfNobody } from "./given-gateway.ts";

/** The documents that are made from the sources, and the page that shows them. */
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

describe("given the OpenAPI document", () => {
  it("is valid OpenAPI 3.1", async () => {
    const validator = new Validator();
    expect(await validator.validate(structuredClone(document))).toMatchObject({ valid: true });
    expect(validator.version).toBe("3.1");
  });

  it("has every route and method of the contract, each under an id of its own", () => {
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

  it("tells for every route what is answered without a key and when we fail", () => {
    for (const methods of Object.values(document.paths))
      for (const { responses, security } of Object.values(methods)) {
        expect(Object.keys(responses)).toEqual(
          expect.arrayContaining(["400", "401", "404", "413", "429", "500", "503"]),
        );
        expect(security.length).toBeGreaterThan(0);
      }
  });

  it("says which key opens a route, and 403 where one kind does not", () => {
    expect(operation("get", "/api/v1/sdk/flags").security).toEqual([
      { clientKey: [] },
      { serverKey: [] },
    ]);
    expect(operation("get", "/api/v1/sdk/flags").responses["403"]).toBeUndefined();
    expect(operation("post", "/api/v1/flags").security).toEqual([{ serverKey: [] }]);
    expect(operation("post", "/api/v1/flags").responses["403"]).toEqual({
      $ref: "#/components/responses/AUTH_002",
    });
    expect(operation("post", "/api/v1/organizations").security).toEqual([{ operatorToken: [] }]);
  });

  it("shows conditional and repeatable requests", () => {
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
    expect(JSON.stringify(operation("post", "/api/v1/flags").responses["201"])).toContain(
      "headers/Location",
    );
  });

  it("has a response for every error code", () => {
    const { components } = buildDocument() as { components: { responses: object } };
    expect(Object.keys(components.responses)).toEqual(Object.keys(errorCodes));
  });
});

describe("given the other generated documents", () => {
  it("has a schema of every message", () => {
    for (const { name, schema } of messageSchemas()) {
      expect(name).toMatch(/^[a-z-]+\.schema\.json$/);
      expect(schema).toMatchObject({ type: "object", $schema: expect.stringContaining("2020-12") });
    }
  });

  it("has the variables of every service", async () => {
    const page = await buildConfigurationPage();
    for (const line of ["## gateway", "## management", "`UPSTREAM_SDK_EDGE_URL`", "`POSTGRES_URL`"])
      expect(page).toContain(line);
  });
});

describe("given the gateway's own pages", () => {
  let gateway: GivenGateway;
  beforeAll(async () => {
    const nobody = await originOfNobody();
    gateway = await givenGateway({ management: [nobody], edges: [nobody] });
  });
  afterAll(() => gateway.stop());

  it("serves the document", async () => {
    const answered = await fetch(`${gateway.url}/openapi.json`);
    expect(answered.headers.get("content-type")).toContain("application/json");
    expect(await answered.json()).toMatchObject({
      openapi: "3.1.0",
      info: { title: "Halyard API" },
    });
  });

  it("serves a page that shows it, with all that the page asks for and no leave to ask elsewhere", async () => {
    for (const path of ["/docs", "/docs/"]) {
      const answered = await fetch(gateway.url + path);
      const html = await answered.text();
      expect(answered.headers.get("content-type")).toContain("text/html");
      expect(answered.headers.get("content-security-policy")).toContain("default-src 'none'");
      expect(html).not.toMatch(/https?:/);
      const asked = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url]) => url as string);
      expect(asked).toHaveLength(4);
      for (const url of asked) expect((await fetch(gateway.url + url)).status).toBe(200);
    }
    const script = await (await fetch(`${gateway.url}/docs/start.js`)).text();
    expect(script).toContain('url: "/openapi.json"');
  });
});
