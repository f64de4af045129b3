import type { TypedValues } from "@halyard/contracts";
import { compile, createContext, readAttributes } from "@halyard/evaluation";
import { captureAnswer } from "../http/raw-connection.ts";
import { numbered } from "../http/requests.ts";
import { type AnyFlag, flagState, type User, userOf } from "./targeted-flags.ts";
import type { Way } from "./ways-of-asking.ts";

const checkedUsers = 60;
/** With 100 flags, it is unlikely that two of these users have the same values. */
const minDifferent = 0.9;
/** The flags of a response, with their values, or the variations of typed ones. */
export type ReadValues = (body: string) => ReadonlyMap<string, Value>;
export type Value = boolean | string | undefined;

/**
 * Verifies that a server returns the right values for each user. Otherwise a fast but wrong response would go
 * unnoticed. Returns the mean size of a response.
 */
export async function assertTargeted(
  url: string,
  options: {
    way: Way;
    key: string;
    flags: readonly AnyFlag[];
    /** Reads the responses of an edge by default. */
    readValues?: ReadValues;
  },
): Promise<number> {
  const { way, key, flags, readValues = readFlagValues } = options;
  const answers = new Set<string>();
  let bytes = 0;
  for (let number = 0; number < checkedUsers; number += 1) {
    const user = userOf(number);
    const answer = await captureAnswer(url, numbered(way.plan(user, key), number));
    const body = answer.body.toString();
    if (answer.status !== 200) throw new Error(`${way.name}: ${answer.status} ${body}`);
    const given = readValues(body);
    const expected = valuesFor(way.sends === "all" ? user : { user_id: user.user_id }, flags);
    for (const [flag, value] of expected)
      if (given.get(flag) !== value)
        throw new Error(`${way.name}: ${flag} must be ${value} for user ${number}`);
    answers.add(body);
    bytes += answer.body.length;
  }
  if (answers.size < checkedUsers * minDifferent)
    throw new Error(`${way.name}: only ${answers.size} of ${checkedUsers} responses differ`);
  return bytes / checkedUsers;
}

/** SDK endpoints return the values by key, OFREP returns a list. */
type Body = {
  flags?: Readonly<Record<string, boolean>> | readonly { key: string; value: boolean }[];
  values?: TypedValues["values"];
};

/** Reads a response of an edge, or of any server with OFREP. */
export function readFlagValues(body: string): Map<string, Value> {
  const { flags = {}, values } = JSON.parse(body) as Body;
  if (values !== undefined) return new Map(Object.entries(values).map(typedValue));
  if (!Array.isArray(flags)) return new Map(Object.entries(flags));
  return new Map(flags.map(({ key, value }) => [key, value]));
}

function typedValue([key, { value, variation }]: [string, TypedValues["values"][string]]): [
  string,
  Value,
] {
  return [key, typeof value === "boolean" ? value : (variation ?? undefined)];
}

function valuesFor(user: Partial<User>, flags: readonly AnyFlag[]): Map<string, Value> {
  const read = readAttributes(user, "reject");
  if (!read.ok) throw new Error(`invalid user in the benchmark: ${read.problem.expected}`);
  const context = createContext(read.attributes);
  return new Map(
    flags.map(flagState).map((flag) => {
      const { evaluate, variationOf } = compile(flag);
      const variation = variationOf && flag.variations?.[variationOf(context)]?.key;
      return [flag.key, variation ?? evaluate(context).value];
    }),
  );
}
