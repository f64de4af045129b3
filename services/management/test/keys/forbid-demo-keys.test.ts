import type { Sql } from "@halyard/postgres";
import { eventually } from "@halyard/testing";
import { expect, it } from "@jest/globals";
import { pino } from "pino";
import { forbidDemoKeys } from "../../src/people/demo-keys.ts";

const failure = (code: string) => Object.assign(new Error("a failure"), { code });

/** Returns a fake database whose first queries fail and whose later queries find no key. */
function failingDatabase(...failures: Error[]): Sql {
  const remaining = [...failures];
  const query = async ([text = ""]: readonly string[]) => {
    // The condition of the query is a fragment, which is not a separate query.
    if (!text.includes("select count")) return undefined;
    const error = remaining.shift();
    if (error !== undefined) throw error;
    return [{ count: 0 }];
  };
  return query as unknown as Sql;
}

it("logs why demo keys could not be checked, and logs again only if the reason changes", async () => {
  const codes: string[] = [];
  const write = (line: string) => void codes.push(JSON.parse(line).err.code);
  const check = await forbidDemoKeys({
    sql: failingDatabase(failure("ECONNREFUSED"), failure("ECONNREFUSED"), failure("42P01")),
    onFound: () => undefined,
    logger: pino({}, { write }),
  });
  expect(check.details()).toEqual({ demo_keys: "unknown" });
  await eventually(() => check.isDone());
  expect(check.details()).toEqual({ demo_keys: "checked" });
  expect(codes).toEqual(["ECONNREFUSED", "42P01"]);
  await check.stop();
});
