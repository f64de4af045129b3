import { Upload } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { FileTrigger, Label, ProgressBar } from "react-aria-components";
import type { Audience } from "../api/schema.d.ts";
import { useKeySession } from "../session/session.tsx";
import { AttributeField } from "../targeting/attribute-field.tsx";
import { Button } from "../ui/button.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { Checkbox } from "../ui/fields.tsx";
import { useUnsaved } from "../ui/leave-guard.ts";
import { count } from "../ui/numbers.ts";
import { Warning } from "../ui/panels.tsx";
import { notify } from "../ui/toasts.tsx";
import styles from "./audiences.module.css";
import { type CheckedList, checkFile, fileProblem, formatOf } from "./check-list.ts";
import { sendFile } from "./send-file.ts";
import { useTakeAudience } from "./use-audience-changes.ts";

/** Uploads a file of entries, which replaces the list. The file is checked line by line before. */
export function UploadForm({ audience }: { audience: Audience }) {
  const [file, setFile] = useState<File>();
  const [hasHeader, setHeader] = useState(false);
  const [attribute, setAttribute] = useState(audience.list?.attribute ?? "id");
  const check = useCheck(file, hasHeader);
  const upload = useUpload(audience, () => setFile(undefined));
  const isUploading = upload.share !== undefined;
  useUnsaved(isUploading);
  return (
    <fieldset className={styles.editor} aria-label="Upload a list">
      <h3>{audience.list === null ? "Upload a list" : "Replace the list by an upload"}</h3>
      <p className={styles.note}>
        A CSV file, of which the first column counts, or NDJSON with one JSON text in each line. At
        most 1,000,000 entries and 64 MiB.
      </p>
      <AttributeField
        label="Compared attribute"
        isLabelHidden={false}
        value={attribute}
        onChange={setAttribute}
      />
      <Checkbox isSelected={hasHeader} onChange={setHeader} isDisabled={isUploading}>
        The first line is a header
      </Checkbox>
      <div className={styles.row}>
        <FileTrigger
          acceptedFileTypes={[".csv", ".txt", ".ndjson", ".jsonl"]}
          onSelect={(files) => {
            upload.reset();
            setFile(files?.[0]);
          }}
        >
          <Button isDisabled={isUploading}>
            <Upload size={16} aria-hidden /> Choose a file
          </Button>
        </FileTrigger>
        {file !== undefined && <bdi>{file.name}</bdi>}
      </div>
      {file !== undefined && !isUploading && (
        <Checked
          check={check}
          size={file.size}
          isReplacing={audience.list !== null}
          isDisabled={attribute.trim() === ""}
          onUpload={() => upload.start({ file, hasHeader, attribute: attribute.trim() })}
        />
      )}
      {isUploading && <Progress share={upload.share ?? 0} onCancel={upload.cancel} />}
      {upload.error !== undefined && <ErrorPanel error={upload.error} />}
    </fieldset>
  );
}

/** The result of the check of a file, undefined while it is read. */
type Check = { result?: CheckedList; error?: unknown };

function useCheck(file: File | undefined, hasHeader: boolean): Check {
  const [check, setCheck] = useState<Check>({});
  useEffect(() => {
    setCheck({});
    if (file === undefined) return;
    const ending = new AbortController();
    checkFile(file, { format: formatOf(file.name), hasHeader }, ending.signal).then(
      (result) => ending.signal.aborted || setCheck({ result }),
      (error: unknown) => ending.signal.aborted || setCheck({ error }),
    );
    return () => ending.abort();
  }, [file, hasHeader]);
  return check;
}

type CheckedProps = {
  check: Check;
  size: number;
  isReplacing: boolean;
  isDisabled: boolean;
  onUpload: () => void;
};

/** Says what a file contains. A file with a rejected line is not uploaded, because the API would reject it whole. */
function Checked({
  check: { result, error },
  size,
  isReplacing,
  isDisabled,
  onUpload,
}: CheckedProps) {
  if (error !== undefined)
    return <Warning>The browser could not read the file. Choose it again.</Warning>;
  if (result === undefined) return <p role="status">Checking the file…</p>;
  const problem = fileProblem(size, result);
  const entries = result.entries === 1 ? "1 entry" : `${count(result.entries)} entries`;
  return (
    <>
      <p role="status">
        The file has {entries}
        {result.rejectedCount === 0
          ? "."
          : ` and ${count(result.rejectedCount)} rejected ${result.rejectedCount === 1 ? "line" : "lines"}.`}
      </p>
      {problem !== undefined && (
        <Warning>
          {result.rejected.length > 0 && (
            <ul className={styles.rejected} aria-label="Rejected lines">
              {result.rejected.map(({ line, problem: why }) => (
                <li key={line}>
                  Line {line} {why}.
                </li>
              ))}
              {result.rejectedCount > result.rejected.length && (
                <li>and {count(result.rejectedCount - result.rejected.length)} more</li>
              )}
            </ul>
          )}
          <p>{problem}</p>
        </Warning>
      )}
      <div>
        <Button
          variant="primary"
          onPress={onUpload}
          isDisabled={isDisabled || problem !== undefined}
        >
          {isReplacing ? `Replace the list by ${entries}` : `Upload ${entries}`}
        </Button>
      </div>
    </>
  );
}

function Progress({ share, onCancel }: { share: number; onCancel: () => void }) {
  const isSent = share === 1;
  const label = isSent ? "Halyard stores the list…" : "Uploading the list";
  return (
    <>
      <ProgressBar value={share * 100} isIndeterminate={isSent}>
        {({ percentage = 100, valueText }) => (
          <>
            <Label>{label}</Label> {valueText}
            <div className={styles.progress}>
              <div className={styles.fill} style={{ width: `${percentage}%` }} />
            </div>
          </>
        )}
      </ProgressBar>
      <div>
        <Button onPress={onCancel}>Cancel the upload</Button>
      </div>
    </>
  );
}

type Chosen = { file: File; hasHeader: boolean; attribute: string };

/** Sends a file and reports its progress. The page that is left cancels the upload, and the old list stays. */
function useUpload(audience: Audience, onUploaded: () => void) {
  const { headers } = useKeySession();
  const take = useTakeAudience();
  const [share, setShare] = useState<number>();
  const [error, setError] = useState<unknown>();
  const current = useRef<AbortController>(undefined);
  useEffect(() => () => current.current?.abort(), []);

  async function start({ file, hasHeader, attribute }: Chosen): Promise<void> {
    const ending = new AbortController();
    current.current = ending;
    setError(undefined);
    setShare(0);
    const query = new URLSearchParams({ attribute, header: hasHeader ? "present" : "absent" });
    try {
      const saved = await sendFile({
        path: `/api/v1/audiences/${encodeURIComponent(audience.key)}/list?${query}`,
        headers,
        version: audience.version,
        file,
        format: formatOf(file.name),
        onProgress: setShare,
        signal: ending.signal,
      });
      onUploaded();
      notify({ text: `The list of ${audience.key} has ${count(saved.list?.count ?? 0)} entries.` });
      await take(saved);
    } catch (failure) {
      if (!ending.signal.aborted) setError(failure);
    } finally {
      setShare(undefined);
    }
  }
  return {
    share,
    error,
    start: (chosen: Chosen) => void start(chosen),
    cancel: () => current.current?.abort(),
    reset: () => setError(undefined),
  };
}
