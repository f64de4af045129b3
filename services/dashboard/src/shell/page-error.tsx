import type { ErrorComponentProps } from "@tanstack/react-router";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { Page } from "../ui/page.tsx";

/** Replaces a page that failed to render or to load its code, which happens after an upgrade of the server. */
export function PageError({ error }: ErrorComponentProps) {
  return (
    <Page title="This page failed">
      <ErrorPanel error={error} onRetry={() => window.location.reload()} />
    </Page>
  );
}
