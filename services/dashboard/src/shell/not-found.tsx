import { Compass } from "lucide-react";
import { ButtonLink } from "../ui/button.tsx";
import { Page } from "../ui/page.tsx";
import { EmptyState } from "../ui/panels.tsx";

export function NotFound() {
  return (
    <Page title="No such page">
      <EmptyState
        icon={Compass}
        title="There is no page at this address"
        action={<ButtonLink to="/">Home</ButtonLink>}
      >
        The address may be misspelled, or what it named was deleted.
      </EmptyState>
    </Page>
  );
}
