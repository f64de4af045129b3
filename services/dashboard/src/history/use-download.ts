import { useEffect, useRef, useState } from "react";
import type { AuditedChange } from "../api/schema.d.ts";
import { readKeyNames } from "../changes/key-names.ts";
import { readChanges } from "../changes/read-changes.ts";
import { type KeySession, useKeySession } from "../session/session.tsx";
import { csvFileName, csvHeader, csvRecords } from "./changes-csv.ts";
import type { ChangesQuery } from "./history-search.ts";

export type Download =
  | { readonly kind: "idle" }
  | { readonly kind: "reading"; readonly count: number }
  | { readonly kind: "saved"; readonly count: number; readonly fileName: string }
  | { readonly kind: "failed"; readonly error: unknown };

/** Largest page of the API. */
const pageSize = 1_000;
/** Spreadsheets read a file without this mark in an encoding of their country. */
const byteOrderMark = "\uFEFF";

/** Saves all changes that match the filters as a CSV file. */
export function useDownload(filters: ChangesQuery) {
  const session = useKeySession();
  const { me } = session;
  const [download, setDownload] = useState<Download>({ kind: "idle" });
  const running = useRef<AbortController>(undefined);
  const cancel = () => {
    running.current?.abort();
    setDownload({ kind: "idle" });
  };
  useEffect(() => () => running.current?.abort(), []);

  async function start(): Promise<void> {
    const controller = new AbortController();
    const { signal } = controller;
    running.current = controller;
    setDownload({ kind: "reading", count: 0 });
    const environments = new Map(me.environments.map(({ id, name }) => [id, name]));
    const parts = [byteOrderMark, csvHeader()];
    let count = 0;
    try {
      const names = { environments, keys: await readKeyNames(session, signal) };
      for await (const changes of readPages(session, filters, signal)) {
        parts.push(csvRecords(changes, names));
        count += changes.length;
        if (signal.aborted) return;
        setDownload({ kind: "reading", count });
      }
      const fileName = csvFileName(me.project.name, new Date().toLocaleDateString("sv"));
      save(new Blob(parts, { type: "text/csv;charset=utf-8" }), fileName);
      setDownload({ kind: "saved", count, fileName });
    } catch (error) {
      if (!signal.aborted) setDownload({ kind: "failed", error });
    }
  }
  return { download, start, cancel };
}

async function* readPages(
  session: KeySession,
  filters: ChangesQuery,
  signal: AbortSignal,
): AsyncGenerator<readonly AuditedChange[]> {
  let cursor: string | null = null;
  do {
    const query = { ...filters, limit: pageSize, ...(cursor !== null && { cursor }) };
    const page: Awaited<ReturnType<typeof readChanges>> = await readChanges(session, query, signal);
    yield page.changes;
    cursor = page.next_cursor;
  } while (cursor !== null);
}

function save(blob: Blob, fileName: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = fileName;
  link.click();
  URL.revokeObjectURL(link.href);
}
