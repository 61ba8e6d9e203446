import type { Membership } from './deployment-settings.ts';
import type { Dispatcher } from './dispatching/dispatcher.ts';
import type { Lookout } from './dispatching/outlook.ts';
import type { Reservations } from './dispatching/reservations.ts';
import type { ClaimingSession } from './dispatching/worker-session.ts';
import type { EventKinds } from './events/event-kinds.ts';
import type { EventRouting } from './events/event-routing.ts';
import type { Notices } from './events/exporter-notices.ts';
import type { TestsUnderWay } from './exporters/test-event.ts';
import type { Formats } from './formats/format.ts';
import type { Vendor } from './messages/signature.ts';
import type { Traces } from './observing/trace-store.ts';
import type { WebhooksOptions } from './options.ts';
import type { BreakerRules } from './outcomes/breaker.ts';
import type { Responses } from './outcomes/response-bodies.ts';
import type { ByteBudget } from './sending/byte-budget.ts';
import type { MessageCache } from './sending/message-cache.ts';

/** What all parts of the engine work with: the checked options, and the objects made from them. */
export interface WebhooksContext extends Required<Omit<WebhooksOptions, 'vendor' | 'kinds' | 'formats'>> {
    readonly vendor: Vendor;
    readonly kinds: EventKinds;
    readonly formats: Formats;
    /** How long a claim holds, in milliseconds; longer than an attempt can take. */
    readonly claimDuration: number;
    readonly breakerRules: BreakerRules;
    readonly dispatcher: Pick<Dispatcher, 'wake' | 'wakeFor' | 'replay' | 'attemptEnded' | 'handOutOptions' | 'add'>;
    readonly session: ClaimingSession;
    readonly lookout: Lookout;
    readonly reservations: Reservations;
    /** The byte budget of this process, for the bodies that are sent, or cached to be. */
    readonly bodyMemory: ByteBudget;
    readonly messageCache: MessageCache;
    readonly routing: EventRouting;
    readonly traces: Traces;
    readonly responses: Responses;
    readonly tests: TestsUnderWay;
    readonly notices: Pick<Notices, 'recorded'>;
    readonly member: Membership;
}
