import {
  type Access,
  ChangeRequest,
  environmentHeader,
  isEventStream,
  type Need,
  needOf,
  type RouteContract,
  recentSignInMinutes,
  reportsRemaining,
  signedIn,
  takesEnvironmentHeader,
  userHeaders,
} from "@halyard/contracts";
import type { Components, JsonObject } from "./components.ts";
import { errorsByStatus, ownErrorsOf } from "./errors.ts";
import { parameterExample } from "./examples.ts";
import {
  answerHeaders,
  cacheHeaders,
  commonHeaders,
  headerRef,
  limitHeaders,
  parameterRef,
} from "./headers.ts";

const session: JsonObject = { session: [] };
const anyKey: JsonObject[] = [{ clientKey: [] }, { readerKey: [] }, { serverKey: [] }];

/** Credentials that a route accepts. Any one of them is sufficient. */
const securityOf: Readonly<Record<Access, JsonObject[]>> = {
  operator: [{ operatorToken: [] }],
  operator_or_server_key: [{ operatorToken: [] }, { serverKey: [] }],
  session: [session],
  operator_or_session: [{ operatorToken: [] }, session],
  server_key: [{ serverKey: [] }],
  server_or_reader_key: [{ readerKey: [] }, { serverKey: [] }],
  any_key: anyKey,
  operator_or_any_key: [{ operatorToken: [] }, ...anyKey],
  any_key_in_either_header: [...anyKey, { keyInOwnHeader: [] }],
  stream_token: [{ streamToken: [] }],
};

export function describeOperation(contract: RouteContract, components: Components): JsonObject {
  const { operationId, tag, summary, description, access } = contract;
  return {
    operationId,
    tags: [tag],
    summary,
    description: [description, ...roleTexts(contract)].join(" "),
    security: isForPeople(contract)
      ? [...new Set([...securityOf[access], session])]
      : securityOf[access],
    parameters: parametersOf(contract, components),
    ...requestBodyOf(contract, components),
    responses: {
      ...successOf(contract, components),
      ...errorsByStatus(contract, components),
      ...ownErrorsOf(contract, components),
    },
  };
}

const isForPeople = (contract: RouteContract) => needOf(contract) !== undefined;

/** Describes the role that a route needs. */
function roleTexts(contract: RouteContract): string[] {
  const need = needOf(contract);
  if (need === undefined || need === signedIn) return [];
  const { role, at, recent } = need;
  const text = `People, and server keys whose user has a role, need the role \`${role}\` ${placeNames[at]}.`;
  return recent ? [text, `A sign-in must be at most ${recentSignInMinutes} minutes old.`] : [text];
}

const placeNames: Readonly<Record<Need["at"], string>> = {
  environment: "in the environment",
  project: "in the whole project",
  any_environment: "in the project or one of its environments",
  organization: "in the whole organization",
  anywhere: "somewhere in the organization",
};

function parametersOf(contract: RouteContract, components: Components): JsonObject[] {
  const parameters = [
    ...fieldsOf(contract, "params", components),
    ...fieldsOf(contract, "query", components),
    parameterRef("X-Request-Id"),
  ];
  if (takesEnvironmentHeader(contract)) parameters.push(parameterRef(environmentHeader));
  if (contract.readsUser === true) parameters.push(...userHeaders.map(parameterRef));
  if (contract.conditional === true) parameters.push(parameterRef("If-Match"));
  if (contract.idempotent !== undefined) parameters.push(parameterRef("Idempotency-Key"));
  if (contract.revalidated === true) parameters.push(parameterRef("If-None-Match"));
  if (contract.unlessPresent === true) parameters.push(parameterRef("If-None-Match-Any"));
  if (isEventStream(contract)) parameters.push(parameterRef("Last-Event-ID"));
  return parameters;
}

function fieldsOf(
  contract: RouteContract,
  part: "params" | "query",
  components: Components,
): JsonObject[] {
  const definition = components.define(contract[part]);
  const required = (definition.required ?? []) as string[];
  return Object.entries((definition.properties ?? {}) as JsonObject).map(([name, field]) => ({
    name,
    in: part === "params" ? "path" : "query",
    required: required.includes(name),
    ...(required.includes(name) ? parameterExample(name, contract) : {}),
    schema: field,
  }));
}

function requestBodyOf(
  { body, bodyOptional, example, furtherExamples, streamedBody }: RouteContract,
  components: Components,
): JsonObject {
  if (streamedBody !== undefined) {
    const described = Object.entries(streamedBody).map(([type, text]) => [
      type,
      { schema: { type: "string" }, example: text },
    ]);
    return { requestBody: { required: true, content: Object.fromEntries(described) } };
  }
  if (body === undefined) return {};
  const named = Object.entries({ default: example, ...furtherExamples });
  const examples =
    furtherExamples === undefined
      ? { example }
      : { examples: Object.fromEntries(named.map(([name, value]) => [name, { value }])) };
  const content = { "application/json": { schema: components.refer(body), ...examples } };
  return { requestBody: { required: bodyOptional !== true, content } };
}

function successOf(contract: RouteContract, components: Components): JsonObject {
  const { status, description, body, contentType = "application/json" } = contract.success;
  const headers: JsonObject = { ...commonHeaders, ...cacheHeaders(contract) };
  if (status === 201)
    headers.Location = { ...(answerHeaders.Location as JsonObject), required: true };
  if (reportsRemaining(contract)) Object.assign(headers, limitHeaders);
  if (isTagged(contract, components)) headers.ETag = headerRef("ETag");
  const schema = body === undefined ? { type: "string" } : components.refer(body);
  const content = status === 204 ? {} : { content: { [contentType]: { schema } } };
  const responses: JsonObject = { [String(status)]: { description, headers, ...content } };
  if (contract.protectable === true)
    responses["202"] = {
      description: "With `Prefer: respond-async`: the change request that was opened instead",
      headers: { ...commonHeaders, Location: answerHeaders.Location },
      content: { "application/json": { schema: components.refer(ChangeRequest) } },
    };
  if (contract.revalidated === true)
    responses["304"] = { description: "The ETag is still the same", headers };
  return responses;
}

/** Returns whether the response has an ETag: a resource with a version, or the result of a conditional change. */
function isTagged(contract: RouteContract, components: Components): boolean {
  const { success, revalidated, conditional, tagged } = contract;
  if (revalidated === true || tagged === true) return true;
  if (success.body === undefined) return false;
  if (conditional === true) return true;
  return "version" in ((components.define(success.body).properties ?? {}) as JsonObject);
}
