import { describe, expect, it } from "@jest/globals";
import type { AuditedChange } from "../src/api/schema.d.ts";
import { csvCell, csvFileName, csvHeader, csvRecords } from "../src/history/changes-csv.ts";

const change: AuditedChange = {
  id: "01993b5e-7a05-7000-8000-000000000001",
  action: "settings",
  change_type: "manual",
  flag_id: "01993b5e-7a05-7000-8000-000000000002",
  flag_key: "new-checkout",
  key_id: null,
  webhook_id: null,
  user_id: null,
  environment_id: null,
  actor: { id: "01993b5e-7a05-7000-8000-000000000003", email: "ada@example.com" },
  api_key_id: "abc",
  before: { name: "Old" },
  after: { name: 'New, "better"' },
  changed_at: "2027-01-31T09:00:00.000Z",
};

const noNames = { environments: new Map(), keys: new Map() };

describe("changes as CSV", () => {
  it("says how each person was signed in, with the name of a key", () => {
    const byKey = { ...change, actor: { ...change.actor, via: "key" as const } };
    const named = csvRecords([byKey], { ...noNames, keys: new Map([["abc", "CI"]]) });
    expect(named).toMatch(/,by the key CI\r\n$/);
  });

  it("has one record for each change, under the names of the columns", () => {
    expect(csvHeader()).toBe(
      "time,person,change,difference,action,how,environment,flag_key,api_key_id,before,after,id,signed_in_by\r\n",
    );
    expect(csvRecords([change], noNames)).toBe(
      "2027-01-31T09:00:00.000Z,ada@example.com,changed the name of new-checkout," +
        '"Name: Old → New, ""better""",settings,manual,,new-checkout,abc,' +
        '"{""name"":""Old""}","{""name"":""New, \\""better\\""""}",' +
        "01993b5e-7a05-7000-8000-000000000001,\r\n",
    );
  });

  it("names the environment, and keeps the id of a deleted one", () => {
    const moved = { ...change, environment_id: "env-1" };
    expect(
      csvRecords([moved], { ...noNames, environments: new Map([["env-1", "production"]]) }),
    ).toContain(",production,");
    expect(csvRecords([moved], noNames)).toContain(",env-1,");
  });

  it.each([
    ["plain", "plain"],
    ["", ""],
    ['say "hi"', '"say ""hi"""'],
    ["a,b", '"a,b"'],
    ["a\nb", '"a\nb"'],
    ["a\r\nb", '"a\r\nb"'],
  ])("quotes %j as RFC 4180 requires", (text, cell) => {
    expect(csvCell(text)).toBe(cell);
  });

  it.each([
    ["=1+1", "'=1+1"],
    ["+1", "'+1"],
    ["-1", "'-1"],
    ["@SUM(A1)", "'@SUM(A1)"],
    ["＝1+1", "'＝1+1"],
    ["\t=1", "'\t'=1"],
    ["\r=1", "\"'\r'=1\""],
    ["\n=1", "\"'\n'=1\""],
    ["\tplain", "'\tplain"],
    ['=HYPERLINK("x")', '"\'=HYPERLINK(""x"")"'],
  ])("keeps a spreadsheet from executing %j", (text, cell) => {
    expect(csvCell(text)).toBe(cell);
  });

  it.each([
    ["x;=1+1", "x;'=1+1"],
    ['x;=HYPERLINK("y");', '"x;\'=HYPERLINK(""y"");"'],
    ["x\t@SUM(A1)", "x\t'@SUM(A1)"],
    ["x\n-1", '"x\n\'-1"'],
    ["x; a=1, b-2 @c", '"x; a=1, b-2 @c"'],
  ])("keeps a spreadsheet that splits at other characters from executing %j", (text, cell) => {
    expect(csvCell(text)).toBe(cell);
  });

  it.each([
    ["Web shop (EU)", "web-shop-eu-changes-2027-01-31.csv"],
    ["../../etc", "etc-changes-2027-01-31.csv"],
    ["Süd", "sud-changes-2027-01-31.csv"],
    ["店", "店-changes-2027-01-31.csv"],
    ["///", "project-changes-2027-01-31.csv"],
  ])("names the file of the project %s", (project, file) => {
    expect(csvFileName(project, "2027-01-31")).toBe(file);
  });
});
