import { Download as DownloadIcon } from "lucide-react";
import { ProgressBar } from "react-aria-components";
import { Button } from "../ui/button.tsx";
import { Dialog, DialogActions } from "../ui/dialog.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { count as wholeNumber } from "../ui/numbers.ts";
import type { ChangesQuery } from "./history-search.ts";
import { type Download, useDownload } from "./use-download.ts";

/** Downloads the history with the filters of the page. The number of entries is unknown before the last page. */
export function DownloadButton({ filters }: { filters: ChangesQuery }) {
  const { download, start, cancel } = useDownload(filters);
  return (
    <>
      <Button onPress={() => void start()}>
        <DownloadIcon size={14} aria-hidden /> Download as CSV
      </Button>
      {download.kind !== "idle" && (
        <Dialog title="Download as CSV" onClose={cancel}>
          <Progress download={download} onRetry={() => void start()} />
          <DialogActions>
            <Button onPress={cancel}>{download.kind === "reading" ? "Cancel" : "Close"}</Button>
          </DialogActions>
        </Dialog>
      )}
    </>
  );
}

function Progress({ download, onRetry }: { download: Download; onRetry: () => void }) {
  switch (download.kind) {
    case "idle":
      return null;
    case "failed":
      return <ErrorPanel error={download.error} onRetry={onRetry} />;
    case "reading":
      return (
        <ProgressBar isIndeterminate aria-label="Reading the history">
          <p>Reading the history: {countText(download.count)} so far…</p>
        </ProgressBar>
      );
    case "saved":
      return (
        <p role="status">
          {countText(download.count)} in <code>{download.fileName}</code>. Times in the file are in
          UTC.
        </p>
      );
  }
}

const countText = (count: number): string =>
  count === 1 ? "1 change" : `${wholeNumber(count)} changes`;
