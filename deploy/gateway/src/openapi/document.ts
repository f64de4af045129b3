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

/**
 * The OpenAPI 3.1 document of the whole public API, from the same contracts that validate requests.
 */
const info = {
  title: "Halyard API",
  version,
  summary: "Feature flags: one change reaches every SDK within milliseconds",
  description:
    "Requests and answers are JSON in UTF-8. Errors are `error` with `code`, `category`, `message` and `status`; below `/ofrep/v1/` they are `errorCode` and `errorDetails`, as OFREP defines. Unknown fields in a body are refused. In the bodies of SDK and OFREP requests, they are attributes of the user or ignored. Every `GET` has a `HEAD`, except those of streams. It answers the same status and headers without a body and is not listed below.",
  license: { name: "Apache-2.0", identifier: "Apache-2.0" },
};

const tags = [
  { name: "SDK", description: "What applications ask for, by polling or by a stream" },
  { name: "OpenFeature", description: "The same by OFREP, for the official OpenFeature providers" },
  { name: "Flags", description: "Flags of a project, and their state in each environment" },
  {
    name: "Schedules",
    description: "Switching a flag on, off, or both, at times that are told beforehand",
  },
  { name: "History", description: "What was changed, when and by whom, and the way back" },
  {
    name: "Webhooks",
    description: "URLs that are told when flags change, and what became of every delivery to them",
  },
  { name: "Usage", description: "What was used of a plan, and which flags are still asked for" },
  { name: "Environments", description: "Environments of a project" },
  { name: "API keys", description: "Keys of SDKs and of those who manage flags" },
  { name: "Organizations", description: "Organizations, users and projects; for the operator" },
];

const bearer = (description: string) => ({ type: "http", scheme: "bearer", description });

const securitySchemes = {
  clientKey: bearer("A client key (`hc_…`): may read flag values"),
  serverKey: bearer("A server key (`hs_…`): may manage flags too"),
  keyInOwnHeader: {
    type: "apiKey",
    in: "header",
    name: "X-API-Key",
    description: "A client or server key, in a header of its own",
  },
  streamToken: {
    type: "apiKey",
    in: "query",
    name: "token",
    description: "From `eventStreams` of a bulk evaluation: good for a day, and for nothing else",
  },
  operatorToken: bearer("The operator's token: may manage organizations"),
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
    servers: [{ url: "/", description: "Where this document comes from" }],
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

/** The second method of a route needs an operation id of its own. */
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
