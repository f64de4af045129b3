import { Webhook } from "lucide-react";
import { useKeySession } from "../session/session.tsx";
import { usePermission } from "../session/use-permission.ts";
import { Button } from "../ui/button.tsx";
import { CodeBlock } from "../ui/code-block.tsx";
import { curl } from "../ui/curl.ts";
import { EmptyState } from "../ui/panels.tsx";
import { receiverSnippet } from "./webhook-texts.ts";

/** Describes the first steps in a project without webhooks. The commands contain the address of this server, and no key. */
export function FirstWebhook({ onCreate }: { onCreate: () => void }) {
  const { me } = useKeySession();
  const { reason } = usePermission("change_webhooks");
  const body = `{
    "name": "Release notes",
    "url": "https://example.com/hooks/halyard",
    "events": ["flag.toggled"],
    "secret": "'"$WEBHOOK_SECRET"'"
  }`;
  const command = curl(`/api/v1/projects/${me.project.id}/webhooks`, body);
  return (
    <EmptyState
      icon={Webhook}
      title={`${me.project.name} has no webhooks yet`}
      action={
        <Button variant="primary" onPress={onCreate} whyNot={reason}>
          Create the first webhook
        </Button>
      }
      examples={
        <>
          <CodeBlock title="Or create it over the API" code={command} />
          <CodeBlock title="A receiver that verifies the signature" code={receiverSnippet} />
        </>
      }
    >
      A webhook tells your other systems about changes of flags, such as a chat channel or an
      incident log.
    </EmptyState>
  );
}
