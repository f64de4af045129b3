import { Outlet } from "@tanstack/react-router";
import { Activity, Building2, LogOut } from "lucide-react";
import { useOperatorSession, useSessions } from "../session/session.tsx";
import { Button } from "../ui/button.tsx";
import { AppearanceButton } from "./appearance.tsx";
import { Frame } from "./frame.tsx";
import type { NavigationEntry } from "./navigation.tsx";

const entries: readonly NavigationEntry[] = [
  { to: "/", label: "Organizations", icon: Building2 },
  { to: "/status", label: "Status", icon: Activity },
];

export function OperatorLayout() {
  const { token } = useOperatorSession();
  const { signOut } = useSessions();
  return (
    <Frame
      entries={entries}
      bottom={
        <div>
          <AppearanceButton />
          <Button variant="quiet" onPress={() => void signOut(token)}>
            <LogOut size={16} aria-hidden /> Sign out
          </Button>
        </div>
      }
    >
      <Outlet />
    </Frame>
  );
}
