import type { InvestigationCreated } from '../../lib/webhooks/events/event-body-types.ts';

/** The body of an event. */
export const investigation: InvestigationCreated = {
    timestamp: '2026-11-21T09:30:00Z',
    title: 'Suspicious sign-in',
    link: 'https://example.com/i/1',
    investigationId: '8b1f8d0a-5d3c-4f6a-9a43-2a2a35f3e0aa',
    investigationRrn: 'rrn:investigation:eu:1:investigation:ABC',
    actors: { users: [], assets: [] },
};
