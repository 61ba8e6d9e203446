import t from 'tap';
import { readsOfCrowdedHosts } from './crowded-hosts.ts';

readsOfCrowdedHosts(t, async () => {});
