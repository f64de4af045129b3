import type { ErrorComponentProps } from "@tanstack/react-router";
import { RefreshCw } from "lucide-react";
import { Button } from "../ui/button.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { Page } from "../ui/page.tsx";
import { EmptyState } from "../ui/panels.tsx";

/** Errors of files that could not be loaded. Their texts differ between browsers, so Vite's event identifies them. */
const loadErrors = new WeakSet<object>();
window.addEventListener("vite:preloadError", ({ payload }) => loadErrors.add(payload));

const reload = () => window.location.reload();

/** Replaces a page that failed to render or to load its code. */
export function PageError({ error }: ErrorComponentProps) {
  if (error instanceof Error && loadErrors.has(error)) return <OutdatedPage />;
  return (
    <Page title="This page failed">
      <ErrorPanel error={error} onRetry={reload} />
    </Page>
  );
}

/** After an upgrade, the server has other files than those that this version of the dashboard names. */
function OutdatedPage() {
  return (
    <Page title="Reload to continue">
      <EmptyState
        icon={RefreshCw}
        title="The files of this page are not available"
        action={
          <Button variant="primary" onPress={reload}>
            Reload
          </Button>
        }
      >
        Halyard was probably upgraded since you opened the dashboard. Reload to use the new version.
        If this appears again, check your connection.
      </EmptyState>
    </Page>
  );
}
