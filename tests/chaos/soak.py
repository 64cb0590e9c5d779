async def soak(minutes: float, rate: float) -> int:
    return 0
