import type { AuditedChange } from "../api/schema.d.ts";
import { changeDifferences } from "../changes/change-difference.ts";
import { sentenceOf, sentenceText } from "../changes/describe-change.ts";
import { signedInBy } from "../changes/signed-in-by.ts";
import { differenceText } from "../state/difference.ts";

/** A record of RFC 4180 ends with a carriage return and a line feed. */
const recordEnd = "\r\n";

/** Returns the names of the columns as a record. */
export const csvHeader = (): string =>
  `time,person,change,difference,action,how,environment,flag_key,api_key_id,before,after,id,signed_in_by${recordEnd}`;

/** Names by ids. */
type CsvNames = {
  environments: ReadonlyMap<string, string>;
  keys: ReadonlyMap<string, string>;
};

/**
 * Returns changes as records of a CSV file. Times are in UTC, because readers of the file are in several zones.
 */
export function csvRecords(changes: readonly AuditedChange[], names: CsvNames): string {
  return changes.map((change) => changeRecord(change, names)).join("");
}

const isoTime = (instant: Date): string => instant.toISOString();

function changeRecord(change: AuditedChange, { environments, keys }: CsvNames): string {
  const { environment_id: id } = change;
  const environment = id === null ? undefined : environments.get(id);
  return record([
    change.changed_at,
    change.actor.email,
    sentenceText(sentenceOf(change, environment, isoTime)),
    changeDifferences(change, isoTime).map(differenceText).join("\n"),
    change.action,
    change.change_type,
    environment ?? id ?? "",
    change.flag_key ?? "",
    change.api_key_id ?? "",
    change.before === null ? "" : JSON.stringify(change.before),
    change.after === null ? "" : JSON.stringify(change.after),
    change.id,
    signedInBy(change, keys),
  ]);
}

const record = (cells: readonly string[]): string => cells.map(csvCell).join(",") + recordEnd;

/**
 * Places in a cell where a formula could begin. Spreadsheets of many countries split at semicolons instead of commas,
 * and then the quotes of a cell protect neither its semicolons nor its lines. Some skip a tab or a line end at the start.
 */
const formulaStart = /(?<=^|[;\t\r\n])(?=[=+\-@＝＋－＠])|^(?=[\t\r\n])/g;

/**
 * Quotes a cell where RFC 4180 requires it. A spreadsheet would execute a text that begins like a formula, so such a
 * text gets an apostrophe.
 */
export function csvCell(text: string): string {
  const safe = text.replaceAll(formulaStart, "'");
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Returns the name of the file: "web-shop-changes-2027-01-31.csv". */
export function csvFileName(projectName: string, day: string): string {
  const project = projectName
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/[\u0300-\u036f]/g, "")
    .replaceAll(/[^\p{L}\p{N}]+/gu, "-")
    .replaceAll(/^-+|-+$/g, "");
  return `${project || "project"}-changes-${day}.csv`;
}
