def draw_curves(measured, folder):
    pass
