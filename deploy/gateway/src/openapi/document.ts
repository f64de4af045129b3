import { readFileSync } from "node:fs";
import { type RouteContract, routes } from "@halyard/contracts";
import { createComponents, type JsonObject } from "./components.ts";
import { errorResponses } from "./errors.ts";
import { answerHeaders, requestHeaderParameters } from "./headers.ts";
import { describeOperation } from "./operation.ts";

/** Version of the release that serves the API. */
const { version } = JSON.parse(
  readFileSync(new URL("../../../../package.json", import.meta.url), "utf8"),
) as { version: string };

/** The OpenAPI 3.1 document of the public API, generated from the contracts that also validate requests. */
const info = {
  title: "Halyard API",
  version,
  summary: "Feature flags: one change reaches every SDK within milliseconds",
  description:
    "Requests and responses are JSON in UTF-8. An error is an object `error` with `code`, `category`, `message` and `status`; below `/ofrep/v1/` it has `errorCode` and `errorDetails`, as OFREP defines. A body with unknown fields is rejected. In SDK and OFREP requests, unknown fields are attributes of the user or are ignored. Every `GET` except those of streams also supports `HEAD`, which returns the same status and headers without a body and is not listed below.",
  license: { name: "Apache-2.0", identifier: "Apache-2.0" },
};

const tags = [
  { name: "SDK", description: "Flag values for applications, by polling or over a stream" },
  { name: "OpenFeature", description: "Flag values by OFREP, for official OpenFeature providers" },
  { name: "Flags", description: "Flags of a project, and their state in each environment" },
  { name: "Audiences", description: "Named sets of users of a project, for the rules of flags" },
  {
    name: "Change requests",
    description: "Changes of protected environments, which other people approve",
  },
  {
    name: "Schedules",
    description: "Switching a flag on, off, or both, at given times",
  },
  { name: "History", description: "Earlier states of a flag, rollback, and the audit log" },
  {
    name: "Webhooks",
    description: "URLs that are notified of changes, and the deliveries to them",
  },
  { name: "Usage", description: "Usage of the plan, and of each flag" },
  { name: "Environments", description: "Environments of a project" },
  { name: "API keys", description: "Client keys read flag values; server keys also manage flags" },
  { name: "People", description: "Sessions, invitations and roles of people" },
  { name: "Operations", description: "The state of the installation. For operators" },
  { name: "Organizations", description: "Organizations, users and projects. For operators" },
];

const bearer = (description: string) => ({ type: "http", scheme: "bearer", description });

const securitySchemes = {
  clientKey: bearer("A client key (`hc_…`), which may read flag values"),
  readerKey: bearer("A reader key (`hr_…`), which may also read rules and report usage"),
  serverKey: bearer("A server key (`hs_…`), which may also manage flags"),
  keyInOwnHeader: {
    type: "apiKey",
    in: "header",
    name: "X-API-Key",
    description: "A client or server key",
  },
  session: {
    type: "apiKey",
    in: "cookie",
    name: "__Host-halyard-session",
    description:
      "The session of a signed-in person. Over HTTP, the cookie is `halyard-session-<port>`",
  },
  streamToken: {
    type: "apiKey",
    in: "query",
    name: "token",
    description:
      "From `eventStreams` of a bulk evaluation. Valid for a day, and only for the stream",
  },
  operatorToken: bearer("The operator token, which may manage organizations and read the status"),
};

export function buildDocument(contracts: readonly RouteContract[] = routes): JsonObject {
  const components = createComponents(contracts);
  const paths: Record<string, JsonObject> = {};
  for (const contract of contracts) {
    const path = contract.path.replaceAll(/:(\w+)/g, "{$1}");
    const operations = paths[path] ?? {};
    paths[path] = operations;
    operations[contract.method.toLowerCase()] = describeOperation(contract, components);
    if (contract.alsoMethod !== undefined)
      operations[contract.alsoMethod.toLowerCase()] = describeAlias(contract, components);
  }
  const responses = errorResponses(contracts, components);
  return {
    openapi: "3.1.0",
    info,
    servers: [{ url: "/", description: "The server of this document" }],
    tags: tags.filter(({ name }) => contracts.some(({ tag }) => tag === name)),
    paths,
    components: {
      schemas: components.referredTo([paths, responses]),
      responses,
      headers: answerHeaders,
      parameters: requestHeaderParameters,
      securitySchemes,
    },
  };
}

/** Describes the second method of a route under another operation id. */
function describeAlias(
  contract: RouteContract,
  components: ReturnType<typeof createComponents>,
): JsonObject {
  const { operationId, alsoMethod = "", method } = contract;
  const described = describeOperation(contract, components);
  return {
    ...described,
    operationId: `${operationId}By${alsoMethod}`,
    description: `The same as ${method}.`,
  };
}
