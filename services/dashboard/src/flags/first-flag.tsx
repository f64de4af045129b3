import { Link } from "@tanstack/react-router";
import { Flag } from "lucide-react";
import { useKeySession } from "../session/session.tsx";
import { usePermission } from "../session/use-permission.ts";
import { Button } from "../ui/button.tsx";
import { CodeBlock } from "../ui/code-block.tsx";
import { curl } from "../ui/curl.ts";
import { EmptyState } from "../ui/panels.tsx";

/** Describes the first steps in a project without flags. The command contains the address of this server, and no key. */
export function FirstFlag({ onCreate }: { onCreate: () => void }) {
  const { me } = useKeySession();
  const { reason } = usePermission("create_flags");
  const command = curl("/api/v1/flags", '{"key":"new-checkout","name":"New checkout"}');
  return (
    <EmptyState
      icon={Flag}
      title={`${me.project.name} has no flags yet`}
      action={
        <Button variant="primary" onPress={onCreate} whyNot={reason}>
          Create the first flag
        </Button>
      }
      examples={<CodeBlock title="Or create it over the API" code={command} />}
    >
      A flag is off in every environment until you turn it on. Your applications ask for it by its
      key: <Link to="/connect">connect your first application</Link>.
    </EmptyState>
  );
}
