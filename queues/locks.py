"""The advisory lock that makes pausing or changing a queue exact."""

#: First key of the two-part advisory locks, the second is a hash of the queue's id. A claim holds it shared while it
#: runs; whoever pauses or changes a queue takes it alone first, so no claim is under way when the change is answered.
QUEUE_LOCK_CLASS = 0x51554555
