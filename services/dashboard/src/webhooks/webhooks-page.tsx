import { Plus, ShieldX } from "lucide-react";
import { type ReactNode, useState } from "react";
import { usePermission } from "../session/use-permission.ts";
import { Button } from "../ui/button.tsx";
import { Page } from "../ui/page.tsx";
import { EmptyState } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { CreateWebhookDialog } from "./create-webhook-dialog.tsx";
import { FirstWebhook } from "./first-webhook.tsx";
import { WebhookList } from "./webhook-list.tsx";
import { useWebhooks } from "./webhook-queries.ts";

export function WebhooksPage() {
  return (
    <ForWebhooks>
      <PermittedPage />
    </ForWebhooks>
  );
}

function PermittedPage() {
  const [isCreating, setCreating] = useState(false);
  const { reason } = usePermission("change_webhooks");
  const webhooks = useWebhooks();
  const create = () => setCreating(true);
  return (
    <Page
      title="Webhooks"
      lead="Halyard sends a signed request to your URLs when flags change, in any environment."
      actions={
        webhooks.data?.length !== 0 && (
          <Button variant="primary" onPress={create} whyNot={reason}>
            <Plus size={16} aria-hidden /> Create webhook
          </Button>
        )
      }
    >
      <QueryView query={webhooks} label="Loading the webhooks">
        {(all) =>
          all.length === 0 ? <FirstWebhook onCreate={create} /> : <WebhookList webhooks={all} />
        }
      </QueryView>
      {isCreating && <CreateWebhookDialog onClose={() => setCreating(false)} />}
    </Page>
  );
}

/** Shows its content to keys that may use webhooks, and the reason to others. */
export function ForWebhooks({ children }: { children: ReactNode }) {
  if (usePermission("read_webhooks").reason === undefined) return children;
  return (
    <Page title="Webhooks">
      <EmptyState icon={ShieldX} title="This key cannot use webhooks">
        It is limited to its environment, and webhooks receive the events of all environments. Use a
        key without this limit.
      </EmptyState>
    </Page>
  );
}
