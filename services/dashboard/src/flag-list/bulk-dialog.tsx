import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { invalidateList } from "../flags/flag-queries.ts";
import { type ListedFlag, tagsOf } from "../flags/flag-search.ts";
import { tagsProblem } from "../flags/flag-settings.ts";
import { FlagTagsField, OwnerField } from "../flags/tags-and-owner.tsx";
import { useKeySession } from "../session/session.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { notify } from "../ui/toasts.tsx";
import {
  type BulkChange,
  type BulkKind,
  batchesOf,
  bulkText,
  changedFlags,
  flagsText,
  requestOf,
} from "./bulk-change.ts";
import styles from "./bulk-dialog.module.css";

/** Flags that the preview names. */
const maxNamed = 50;

const titles: Readonly<Record<BulkKind, string>> = {
  archive: "Archive flags",
  restore: "Restore flags",
  owner: "Set the owner of flags",
  add_tags: "Add tags to flags",
  remove_tags: "Remove tags from flags",
};

type BulkDialogProps = { kind: BulkKind; flags: readonly ListedFlag[]; onClose: () => void };

/** Shows how many of the selected flags a change makes different, then changes them. */
export function BulkDialog({ kind, flags, onClose }: BulkDialogProps) {
  const [owner, setOwner] = useState("");
  const [tags, setTags] = useState<readonly string[]>([]);
  const change = changeOf(kind, owner, tags);
  const changed = changedFlags(flags, change);
  const isValid = kind !== "add_tags" || tagsProblem(tags) === undefined;
  const { mutate, isPending, error, done } = useBulkChange(onClose);
  const ids = changed.map(({ id }) => id);
  return (
    <FormDialog
      title={titles[kind]}
      action={`Change ${flagsText(changed.length)}`}
      onClose={onClose}
      onSubmit={() => mutate({ change, ids })}
      isPending={isPending}
      isComplete={changed.length > 0 && isValid}
      error={error}
    >
      {kind === "owner" && <OwnerField value={owner} onChange={setOwner} />}
      {kind === "add_tags" && <FlagTagsField label="Tags to add" tags={tags} onChange={setTags} />}
      {kind === "remove_tags" && (
        <FlagTagsField
          label="Tags to remove"
          tags={tags}
          onChange={setTags}
          suggestions={tagsOf(flags)}
        />
      )}
      {requestOf(change) !== undefined && (
        <Preview change={change} changed={changed} unchanged={flags.length - changed.length} />
      )}
      {isPending && <p role="status">{flagsText(done)} changed so far</p>}
    </FormDialog>
  );
}

function changeOf(kind: BulkKind, owner: string, tags: readonly string[]): BulkChange {
  if (kind === "owner") return { kind, owner };
  return kind === "add_tags" || kind === "remove_tags" ? { kind, tags } : { kind };
}

type PreviewProps = { change: BulkChange; changed: readonly ListedFlag[]; unchanged: number };

function Preview({ change, changed, unchanged }: PreviewProps) {
  return (
    <div className={styles.preview}>
      <p role="status">
        <b>{bulkText(change, changed.length)}.</b>{" "}
        {unchanged > 0 && `${flagsText(unchanged)} of the selection stay the same.`}
      </p>
      <ul className={styles.keys} aria-label="Flags that change">
        {changed.slice(0, maxNamed).map(({ id, key, owner }) => (
          <li key={id}>
            <code>{key}</code>
            {change.kind === "owner" && owner !== null && ` (now ${owner})`}
          </li>
        ))}
        {changed.length > maxNamed && <li>and {flagsText(changed.length - maxNamed)} more</li>}
      </ul>
    </div>
  );
}

/**
 * Sends a change in batches. After a failure, the list shows which flags are changed, and the dialog then offers only
 * the others.
 */
function useBulkChange(onDone: () => void) {
  const { api } = useKeySession();
  const client = useQueryClient();
  const [done, setDone] = useState(0);
  const mutation = useMutation({
    mutationFn: async ({ change, ids }: { change: BulkChange; ids: readonly string[] }) => {
      const set = requestOf(change);
      if (set === undefined) return;
      setDone(0);
      for (const flag_ids of batchesOf(ids)) {
        await unwrap(api.POST("/api/v1/flags/bulk", { body: { flag_ids, set } }));
        setDone((before) => before + flag_ids.length);
      }
    },
    onSuccess: (_nothing, { change, ids }) => {
      notify({ text: `Done: ${bulkText(change, ids.length)}.` });
      onDone();
    },
    onSettled: async () => {
      await invalidateList(client);
      await client.invalidateQueries({ queryKey: ["flag"] });
    },
  });
  return { ...mutation, done };
}
