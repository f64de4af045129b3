import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Reads the operations of the generated OpenAPI document. */
export type Schema = {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  const?: unknown;
  pattern?: string;
  format?: string;
  minimum?: number;
};

export type Operation = {
  id: string;
  method: string;
  /** The path, with its parameters in braces. */
  path: string;
  pathParameters: readonly string[];
  queryParameters: readonly { name: string; required: boolean; schema: Schema }[];
  /** The request headers that the operation reads. */
  headers: ReadonlySet<string>;
  /** The accepted credentials: `clientKey`, `serverKey` or `operatorToken`. */
  accepts: ReadonlySet<string>;
  /** The body, if it is JSON. */
  body: { schema: Schema; required: boolean; example: unknown } | undefined;
  /** The media type of a body that is not JSON, and an example of it. */
  upload: { type: string; example: string } | undefined;
  /** The responses by status. */
  responses: Readonly<Record<string, Response>>;
};

type Response = {
  headers: Readonly<Record<string, { required: boolean; schema: Schema }>>;
  /** The content by media type. */
  content: Readonly<Record<string, { schema: Schema }>>;
};

type Document = {
  paths: Record<string, Record<string, RawOperation>>;
  components: {
    schemas: Record<string, Schema>;
    parameters: Record<string, RawParameter>;
    responses: Record<string, RawResponse>;
    headers: Record<string, RawHeader>;
  };
};
type RawHeader = { $ref?: string; required?: boolean; schema: Schema };
type RawResponse = {
  $ref?: string;
  headers?: Record<string, RawHeader>;
  content?: Record<string, { schema: Schema }>;
};
type RawParameter = {
  $ref?: string;
  name: string;
  in: string;
  required?: boolean;
  schema: Schema;
};
type RawOperation = {
  operationId: string;
  security?: Record<string, unknown>[];
  parameters?: RawParameter[];
  requestBody?: {
    required?: boolean;
    content: Record<
      string,
      { schema: Schema; example?: unknown; examples?: { default: { value: unknown } } }
    >;
  };
  responses: Record<string, RawResponse>;
};

const file = fileURLToPath(new URL("../../../docs/openapi.json", import.meta.url));
export const document = JSON.parse(readFileSync(file, "utf8")) as Document;

export function resolve(schema: Schema): Schema {
  if (schema.$ref === undefined) return schema;
  const name = schema.$ref.replace("#/components/schemas/", "");
  const found = document.components.schemas[name];
  if (found === undefined) throw new Error(`the document lacks ${schema.$ref}`);
  return resolve(found);
}

/** Returns a part of the document, or the component that it refers to. */
function componentOf<T extends { $ref?: string }>(
  kind: Exclude<keyof Document["components"], "schemas">,
  part: T,
): T {
  if (part.$ref === undefined) return part;
  const components = document.components[kind] as Record<string, unknown>;
  return components[part.$ref.replace(`#/components/${kind}/`, "")] as T;
}

function responseOf(raw: RawResponse): Response {
  const { headers = {}, content = {} } = componentOf("responses", raw);
  const described = Object.entries(headers).map(([name, header]) => {
    const { required = false, schema } = componentOf("headers", header);
    return [name.toLowerCase(), { required, schema }] as const;
  });
  return { headers: Object.fromEntries(described), content };
}

function uploadOf({ requestBody }: RawOperation): Operation["upload"] {
  const [type, content] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  return type === undefined ? undefined : { type, example: String(content?.example) };
}

export function operations(): Operation[] {
  return allOperations().filter(({ accepts }) => [...accepts].some((each) => each !== "session"));
}

function allOperations(): Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, raw]) => {
      const parameters = (raw.parameters ?? []).map((each) => componentOf("parameters", each));
      const content = raw.requestBody?.content["application/json"];
      const schema = content?.schema;
      const example = content?.example ?? content?.examples?.default.value;
      return {
        id: `${method.toUpperCase()} ${path}`,
        method: method.toUpperCase(),
        path,
        pathParameters: parameters.filter((each) => each.in === "path").map(({ name }) => name),
        queryParameters: parameters
          .filter((each) => each.in === "query")
          .map(({ name, required, schema: shape }) => ({
            name,
            required: required ?? false,
            schema: shape,
          })),
        headers: new Set(parameters.filter((each) => each.in === "header").map(({ name }) => name)),
        accepts: new Set((raw.security ?? []).flatMap((each) => Object.keys(each))),
        body:
          schema === undefined
            ? undefined
            : { schema, required: raw.requestBody?.required ?? false, example },
        upload: schema === undefined ? uploadOf(raw) : undefined,
        responses: Object.fromEntries(
          Object.entries(raw.responses).map(([status, response]) => [status, responseOf(response)]),
        ),
      };
    }),
  );
}

/** Returns the body of a request and its media type: a value as JSON, or the example of an upload. */
export function contentOf(
  { upload }: Operation,
  body: unknown,
): { headers: Record<string, string>; body?: string } {
  if (upload !== undefined)
    return { headers: { "content-type": upload.type }, body: upload.example };
  if (body === undefined) return { headers: {} };
  return { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}
