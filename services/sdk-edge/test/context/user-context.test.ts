import type { IncomingHttpHeaders } from "node:http";
import { type EvaluationContext, emptyContext } from "@halyard/evaluation";
import { isProblem } from "@halyard/http";
import { describe, expect, it } from "@jest/globals";
import { type ContextSources, readUserContext } from "../../src/context/user-context.ts";
import { asHeader, asQuery, holds } from "./reading.ts";

const nothing: ContextSources = { headers: {}, ...asQuery(""), body: undefined };

function read(sources: Partial<ContextSources>): EvaluationContext {
  const context = readUserContext({ ...nothing, ...sources });
  if (isProblem(context)) throw new Error(`The request was rejected: ${context.message}`);
  return context;
}

function problemOf(sources: Partial<ContextSources>) {
  const problem = readUserContext({ ...nothing, ...sources });
  if (!isProblem(problem)) throw new Error("The request was accepted.");
  return problem;
}

describe("given a request without attributes of a user", () => {
  it.each<[string, Partial<ContextSources>]>([
    ["no input", {}],
    ["other headers", { headers: { authorization: "Bearer x", "x-user-agent": "y" } }],
    [
      "headers without a value",
      {
        headers: {
          "x-user-context": "",
          "x-user-id": "",
          "x-user-email": "",
          "x-user-attributes": "",
        },
      },
    ],
    ["other parameters", asQuery("key=checkout")],
    ["an empty user_id", asQuery("user_id=")],
    ["an empty body object", { body: {} }],
    ["a body whose attributes are null", { body: { id: null, user: { id: null } } }],
    ["an empty context header", { headers: { "x-user-context": "{}" } }],
    ["an empty list", { headers: { "x-user-attributes": ", ," } }],
  ])("returns the shared empty context: %s", (_case, sources) => {
    expect(read(sources)).toBe(emptyContext);
  });
});

/** The sources of attributes, in the order of precedence. */
const sources: {
  name: string;
  attribute: string;
  says: (value: string) => Partial<ContextSources>;
}[] = [
  { name: "the body", attribute: "id", says: (id) => ({ body: { user: { id } } }) },
  {
    name: "X-User-Context",
    attribute: "id",
    says: (id) => ({ headers: { "x-user-context": JSON.stringify({ user_id: id }) } }),
  },
  { name: "X-User-ID", attribute: "id", says: (id) => ({ headers: { "x-user-id": id } }) },
  {
    name: "X-User-Attributes",
    attribute: "id",
    says: (id) => ({ headers: { "x-user-attributes": `id=${id}` } }),
  },
  { name: "the query", attribute: "id", says: (id) => asQuery(`user_id=${id}`) },
  { name: "the body", attribute: "email", says: (email) => ({ body: { email } }) },
  {
    name: "X-User-Context",
    attribute: "email",
    says: (email) => ({ headers: { "x-user-context": JSON.stringify({ email }) } }),
  },
  {
    name: "X-User-Email",
    attribute: "email",
    says: (email) => ({ headers: { "x-user-email": email } }),
  },
  {
    name: "X-User-Attributes",
    attribute: "email",
    says: (email) => ({ headers: { "x-user-attributes": `email=${email}` } }),
  },
];

const pairs = sources.flatMap((stronger, index) =>
  sources
    .slice(index + 1)
    .filter(({ attribute }) => attribute === stronger.attribute)
    .map((weaker) => ({
      attribute: stronger.attribute,
      wins: stronger.name,
      over: weaker.name,
      stronger: stronger.says("wins"),
      weaker: weaker.says("loses"),
    })),
);

describe("given two sources of the same attribute", () => {
  it.each(pairs)(
    "reads $attribute from $wins and not from $over",
    ({ attribute, stronger, weaker }) => {
      const context = read({
        ...weaker,
        ...stronger,
        headers: { ...weaker.headers, ...stronger.headers },
      });
      expect(holds(context, attribute, "wins")).toBe(true);
    },
  );
});

describe("given sources of different attributes", () => {
  const context = read({
    headers: {
      "x-user-context": '{"fromContext":1}',
      "x-user-id": "u",
      "x-user-email": "e",
      "x-user-attributes": "fromList=l",
    },
    ...asQuery("user_id=q"),
    body: { user: { attributes: { fromUser: true } }, fromBody: "b" },
  });

  it.each([
    ["fromContext", 1],
    ["id", "u"],
    ["email", "e"],
    ["fromList", "l"],
    ["fromUser", true],
    ["fromBody", "b"],
  ])("reads all of them: %s", (attribute, value) => {
    expect(holds(context, attribute, value)).toBe(true);
  });

  it("contains no attribute that was not sent", () => {
    expect(holds(context, "constructor", "")).toBe(false);
    expect(holds(context, "user", "u")).toBe(false);
    expect(holds(context, "user_id", "q")).toBe(false);
  });
});

describe("given header values beyond ASCII", () => {
  it.each([
    ["id", "x-user-id", "jürgen"],
    ["email", "x-user-email", "jürgen@例え.jp"],
    ["city", "x-user-attributes", "city=München 🎈"],
    ["city", "x-user-context", '{"city":"München 🎈"}'],
  ])("reads %s of %s as UTF-8", (attribute, header, value) => {
    const context = read({ headers: { [header]: asHeader(value) } });
    const expected = attribute === "city" ? "München 🎈" : value;
    expect(holds(context, attribute, expected)).toBe(true);
  });

  it.each([
    ["X-User-ID", "\xfc"],
    ["X-User-Email", "j\xfcrgen"],
    ["X-User-Attributes", "city=M\xfcnchen"],
    ["X-User-Context", '{"city":"M\xfcnchen"}'],
  ])("rejects %s with invalid UTF-8", (header, value) => {
    expect(problemOf({ headers: { [header.toLowerCase()]: value } })).toEqual({
      rejected: "VALIDATION_001",
      message: `${header} must be valid UTF-8`,
    });
  });
});

describe("given an invalid source and another source with precedence over it", () => {
  it.each<[string, Partial<ContextSources>]>([
    ["X-User-Context", { headers: { "x-user-context": "{" } }],
    [
      "X-User-Context beside other headers",
      { headers: { "x-user-context": "{", "x-user-id": "u" } },
    ],
    ["X-User-ID", { headers: { "x-user-id": "\xff" } }],
    ["X-User-Attributes", { headers: { "x-user-attributes": "id" } }],
    ["the query", asQuery("user_id=%")],
  ])("still rejects the invalid source: %s", (_case, wrong) => {
    expect(problemOf({ ...wrong, body: { id: "u" } }).rejected).toBe("VALIDATION_001");
  });
});

describe("given large headers about the user", () => {
  const limit = 16 * 1024;
  const json = (bytes: number) => `{"a":"${"x".repeat(bytes - 8)}"}`;

  it.each<[string, IncomingHttpHeaders]>([
    ["X-User-Context", { "x-user-context": json(limit) }],
    ["X-User-ID", { "x-user-id": "x".repeat(limit) }],
    ["X-User-Email", { "x-user-email": "x".repeat(limit) }],
    ["X-User-Attributes", { "x-user-attributes": `a=${"x".repeat(limit - 2)}` }],
    [
      "all together",
      { "x-user-context": json(limit - 10), "x-user-id": "12345", "x-user-email": "1@345" },
    ],
  ])("reads 16 KiB and rejects one byte more: %s", (_case, headers) => {
    expect(isProblem(readUserContext({ ...nothing, headers }))).toBe(false);
    const [[name, value] = ["", ""]] = Object.entries(headers);
    const longer = { ...headers, [name]: String(value).replace("x", "xx") };
    const one = name === "x-user-id" ? { ...headers, [name]: `${value}x` } : longer;
    expect(problemOf({ headers: one })).toEqual({
      rejected: "VALIDATION_002",
      message: "The X-User-* headers must have at most 16384 bytes together",
    });
  });

  it("counts bytes and not characters", () => {
    const balloons = (count: number) => ({ "x-user-id": asHeader("🎈".repeat(count)) });
    expect(isProblem(readUserContext({ ...nothing, headers: balloons(limit / 4) }))).toBe(false);
    expect(problemOf({ headers: balloons(limit / 4 + 1) }).rejected).toBe("VALIDATION_002");
  });
});

describe("given headers and parameters that are not attributes", () => {
  it.each<[string, IncomingHttpHeaders, string]>([
    ["nothing", {}, ""],
    ["other headers and parameters", { "user-agent": "x", "x-user": "y" }, "key=checkout"],
    ["headers without a value", { "x-user-id": "", "x-user-context": "" }, ""],
  ])("returns the shared empty context: %s", (_case, headers, query) => {
    expect(read({ headers, ...asQuery(query) })).toBe(emptyContext);
  });
});
